package dispatcher

import (
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

const (
	// backlogInterval is how often topics with an alarm are looked at, by the process that carries their own shard.
	backlogInterval = 5 * time.Second
	// backlogReload is how often that process reads the policies again: it may claim nothing, and so hear of nothing.
	backlogReload = 30 * time.Second
	// backlogOverChecks is how many looks in a row must find a backlog over.
	backlogOverChecks = 2
	// backlogMaxResets is of how many topics without an alarm one look makes sure that none is raised: each once a lead.
	backlogMaxResets = 64
)

// backlog tells of a topic's backlog.
type backlog struct {
	Type      string    `json:"type"` // topic.backlog, topic.backlog_over
	Timestamp timestamp `json:"timestamp"`
	Topic     string    `json:"topic"`
	Pending   int64     `json:"pending"` // unfinished jobs
	// OldestDueAt is when the job was due that has waited longest; null when none waits.
	OldestDueAt *timestamp `json:"oldest_due_at"`
	OlderThan   string     `json:"older_than,omitempty"`
	MoreThan    int64      `json:"more_than,omitempty"`
}

// An alarmState topic is what this process knows of the alarm of a topic that it looks at.
type alarmState struct {
	known     bool      // the rest is as the store has it
	raised    bool      // the alarm
	url       string    // who was told that it is
	since     time.Time // when this process began to look, unless it is known
	overCount int       // looks in a row that found it raised, and the backlog over
}

// A backlogMonitor looks at topics.
type backlogMonitor struct {
	*Dispatcher

	topics map[topicName]*alarmState // of the shards that this process carries
	failed store.Backoff
}

// monitorBacklogs raises and ends the alarms of topics until ctx ends. Whether an alarm is raised is in the store, so that
// it is told once, whichever process looks.
func (d *Dispatcher) monitorBacklogs(ctx context.Context) {
	w := &backlogMonitor{Dispatcher: d, topics: make(map[topicName]*alarmState)}
	tick := time.NewTicker(backlogInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch err := w.check(ctx); {
		case err == nil:
			w.failed.Reset()
		case ctx.Err() == nil:
			d.log.Log(ctx, w.failed.Level(), "topics' backlogs could not be looked at", "err", err)
			w.failed.Next()
		}
	}
}

// check looks at all topics once, for no longer than the time until the next look.
func (w *backlogMonitor) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, backlogInterval)
	defer cancel()
	set := w.policies.cached.Load()
	if w.leadsAnyShard() && time.Since(set.loadedAt) > backlogReload {
		if fresh, err := w.policies.reload(ctx); err == nil {
			set = fresh
		}
	}
	watched := make(map[string][]store.Topic) // by namespace
	var unsure []store.Topic                  // nobody is to be told of their backlog, but somebody may have been
	for name, t := range set.stored {
		if !w.carrier.Leading(w.store.ShardOfTopic(name.namespace, name.name)) {
			delete(w.topics, name)
			continue
		}
		a := w.topics[name]
		if a == nil {
			a = &alarmState{since: time.Now()}
			w.topics[name] = a
		}
		switch {
		// Nobody is told of the backlog of callbacks: that would be one more of them.
		case t.Policy.OnBacklog != nil && name.name != job.CallbackTopic:
			watched[name.namespace] = append(watched[name.namespace], t)
		case a.known && a.raised, !a.known && set.loadedAt.After(a.since) && len(unsure) < backlogMaxResets:
			unsure = append(unsure, t)
		}
	}
	var failed error
	for namespace, topics := range watched {
		if err := w.evaluate(ctx, namespace, topics); err != nil {
			failed = err
		}
	}
	for _, t := range unsure { // whoever is to be told next begins anew
		if err := w.setAlarm(ctx, t, w.topics[topicName{t.Namespace, t.Name}], false); err != nil {
			return err
		}
	}
	return failed
}

// leadsAnyShard reports whether this process carries a shard.
func (d *Dispatcher) leadsAnyShard() bool {
	for shard := range d.store.Shards() {
		if d.carrier.Leading(shard) {
			return true
		}
	}
	return false
}

// evaluate looks at the topics of a namespace that have an alarm, store.MaxBatch of them in one reading.
func (w *backlogMonitor) evaluate(ctx context.Context, namespace string, topics []store.Topic) error {
	rows := make(map[string]store.TopicStats, len(topics))
	for part := range slices.Chunk(topics, store.MaxBatch) {
		f := store.StatsFilter{Namespace: namespace, Topics: make([]string, len(part))}
		for i, t := range part {
			f.Topics[i] = t.Name
		}
		stats, err := w.store.TopicStats(ctx, f)
		if err != nil {
			return err
		}
		for _, s := range stats {
			rows[s.Topic] = s
		}
	}
	var failed error
	for _, t := range topics {
		if err := w.evaluateTopic(ctx, t, w.topics[topicName{namespace, t.Name}], rows[t.Name]); err != nil {
			failed = err
		}
	}
	return failed
}

// evaluateTopic raises or ends the alarm of a topic that stands so. A raised one ends when backlogOverChecks looks in a row say so,
// so that a backlog that comes and goes around its bound is not told again and again.
func (w *backlogMonitor) evaluateTopic(ctx context.Context, t store.Topic, a *alarmState, s store.TopicStats) error {
	var age time.Duration
	if !s.OldestDue.IsZero() {
		age = max(0, time.Since(s.OldestDue))
	}
	alarm := t.Policy.OnBacklog
	now := alarm.Raised(age, s.Scheduled+s.Ready+s.Running)
	if a.known && a.raised && a.url != alarm.URL {
		if err := w.setAlarm(ctx, t, a, false); err != nil { // whoever is to be told now was not
			return err
		}
	}
	switch {
	case a.known && a.raised == now:
		a.overCount = 0
		return nil
	case !now:
		if a.overCount++; a.overCount < backlogOverChecks {
			return nil
		}
	}
	return w.setAlarm(ctx, t, a, now, w.newBacklogJob(t, alarm, now, s))
}

// setAlarm notes in the store how an alarm stands, which tells of it if that is news.
func (w *backlogMonitor) setAlarm(ctx context.Context, t store.Topic, a *alarmState, raised bool, births ...store.NewJob) error {
	_, err := w.store.Alarm(ctx, w.store.ShardOfTopic(t.Namespace, t.Name), store.NewToken(), store.Alarm{
		Namespace: t.Namespace, Topic: t.Name, Raised: raised, Outbox: births,
	})
	if err != nil {
		return err
	}
	*a = alarmState{known: true, raised: raised}
	if raised {
		a.url = t.Policy.OnBacklog.URL
	}
	return nil
}

// newBacklogJob makes the job that tells of a backlog.
func (d *Dispatcher) newBacklogJob(t store.Topic, alarm *policy.Backlog, now bool, s store.TopicStats) store.NewJob {
	b := backlog{
		Type: "topic.backlog_over", Timestamp: timestamp(time.Now()), Topic: t.Name,
		Pending: s.Scheduled + s.Ready + s.Running, MoreThan: alarm.MoreThan,
	}
	if now {
		b.Type = "topic.backlog"
	}
	if alarm.OlderThan > 0 {
		b.OlderThan = job.FormatDuration(alarm.OlderThan)
	}
	if !s.OldestDue.IsZero() {
		b.OldestDueAt = new(timestamp(s.OldestDue))
	}
	n := newCallback(&alarm.Callback, t.Namespace, t.Name, b)
	n.ID, n.Kind, n.Origin = "rb:"+job.NewID(time.Now(), d.store.ShardOf(n.Queue)), job.KindAlarm, t.Name
	return d.outboxEntry(n)
}
