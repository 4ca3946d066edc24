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
	// backlogEvery is how often topics with an alarm are looked at, by the process that carries their own shard.
	backlogEvery = 5 * time.Second
	// backlogLearn is how often that process reads the policies again: it may claim nothing, and so hear of nothing.
	backlogLearn = 30 * time.Second
	// backlogOver is how many looks in a row must find a backlog over.
	backlogOver = 2
	// backlogQuiet is of how many topics without an alarm one look makes sure that none is raised: each once a lead.
	backlogQuiet = 64
)

// backlog tells of a topic's backlog.
type backlog struct {
	Type      string `json:"type"` // topic.backlog, topic.backlog_over
	Timestamp moment `json:"timestamp"`
	Topic     string `json:"topic"`
	Pending   int64  `json:"pending"` // unfinished jobs
	// OldestDueAt is when the job was due that has waited longest; null when none waits.
	OldestDueAt *moment `json:"oldest_due_at"`
	OlderThan   string  `json:"older_than,omitempty"`
	MoreThan    int64   `json:"more_than,omitempty"`
}

// An alarmed topic is what this process knows of the alarm of a topic that it looks at.
type alarmed struct {
	known  bool      // the rest is as the store has it
	raised bool      // the alarm
	url    string    // who was told that it is
	since  time.Time // when this process began to look, unless it is known
	over   int       // looks in a row that found it raised, and the backlog over
}

// A backlogWatch looks at topics.
type backlogWatch struct {
	*Dispatcher

	topics map[topicName]*alarmed // of the shards that this process carries
	failed store.Backoff
}

// watchBacklogs raises and ends the alarms of topics until ctx ends. Whether an alarm is raised is in the store, so that
// it is told once, whichever process looks.
func (d *Dispatcher) watchBacklogs(ctx context.Context) {
	w := &backlogWatch{Dispatcher: d, topics: make(map[topicName]*alarmed)}
	tick := time.NewTicker(backlogEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch err := w.look(ctx); {
		case err == nil:
			w.failed.Reset()
		case ctx.Err() == nil:
			d.log.Log(ctx, w.failed.Level(), "topics' backlogs could not be looked at", "err", err)
			w.failed.Next()
		}
	}
}

// look looks at all topics once, for no longer than the time until the next look.
func (w *backlogWatch) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, backlogEvery)
	defer cancel()
	set := w.policies.now.Load()
	if w.leads() && time.Since(set.read) > backlogLearn {
		if fresh, err := w.policies.fresh(ctx); err == nil {
			set = fresh
		}
	}
	watched := make(map[string][]store.Topic) // by namespace
	var unsure []store.Topic                  // nobody is to be told of their backlog, but somebody may have been
	for name, t := range set.put {
		if !w.carrier.Leading(w.store.ShardOfTopic(name.namespace, name.name)) {
			delete(w.topics, name)
			continue
		}
		a := w.topics[name]
		if a == nil {
			a = &alarmed{since: time.Now()}
			w.topics[name] = a
		}
		switch {
		// Nobody is told of the backlog of callbacks: that would be one more of them.
		case t.Policy.OnBacklog != nil && name.name != job.CallbackTopic:
			watched[name.namespace] = append(watched[name.namespace], t)
		case a.known && a.raised, !a.known && set.read.After(a.since) && len(unsure) < backlogQuiet:
			unsure = append(unsure, t)
		}
	}
	var failed error
	for namespace, topics := range watched {
		if err := w.judge(ctx, namespace, topics); err != nil {
			failed = err
		}
	}
	for _, t := range unsure { // whoever is to be told next begins anew
		if err := w.set(ctx, t, w.topics[topicName{t.Namespace, t.Name}], false); err != nil {
			return err
		}
	}
	return failed
}

// leads reports whether this process carries a shard.
func (d *Dispatcher) leads() bool {
	for shard := range d.store.Shards() {
		if d.carrier.Leading(shard) {
			return true
		}
	}
	return false
}

// judge looks at the topics of a namespace that have an alarm, store.MaxBatch of them in one reading.
func (w *backlogWatch) judge(ctx context.Context, namespace string, topics []store.Topic) error {
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
		if err := w.judgeTopic(ctx, t, w.topics[topicName{namespace, t.Name}], rows[t.Name]); err != nil {
			failed = err
		}
	}
	return failed
}

// judgeTopic raises or ends the alarm of a topic that stands so. A raised one ends when backlogOver looks in a row say so,
// so that a backlog that comes and goes around its bound is not told again and again.
func (w *backlogWatch) judgeTopic(ctx context.Context, t store.Topic, a *alarmed, s store.TopicStats) error {
	var age time.Duration
	if !s.OldestDue.IsZero() {
		age = max(0, time.Since(s.OldestDue))
	}
	alarm := t.Policy.OnBacklog
	now := alarm.Raised(age, s.Scheduled+s.Ready+s.Running)
	if a.known && a.raised && a.url != alarm.URL {
		if err := w.set(ctx, t, a, false); err != nil { // whoever is to be told now was not
			return err
		}
	}
	switch {
	case a.known && a.raised == now:
		a.over = 0
		return nil
	case !now:
		if a.over++; a.over < backlogOver {
			return nil
		}
	}
	return w.set(ctx, t, a, now, w.tellBacklog(t, alarm, now, s))
}

// set notes in the store how an alarm stands, which tells of it if that is news.
func (w *backlogWatch) set(ctx context.Context, t store.Topic, a *alarmed, raised bool, births ...store.NewJob) error {
	_, err := w.store.Alarm(ctx, w.store.ShardOfTopic(t.Namespace, t.Name), store.NewToken(), store.Alarm{
		Namespace: t.Namespace, Topic: t.Name, Raised: raised, Outbox: births,
	})
	if err != nil {
		return err
	}
	*a = alarmed{known: true, raised: raised}
	if raised {
		a.url = t.Policy.OnBacklog.URL
	}
	return nil
}

// tellBacklog makes the job that tells of a backlog.
func (d *Dispatcher) tellBacklog(t store.Topic, alarm *policy.Backlog, now bool, s store.TopicStats) store.NewJob {
	b := backlog{
		Type: "topic.backlog_over", Timestamp: moment(time.Now()), Topic: t.Name,
		Pending: s.Scheduled + s.Ready + s.Running, MoreThan: alarm.MoreThan,
	}
	if now {
		b.Type = "topic.backlog"
	}
	if alarm.OlderThan > 0 {
		b.OlderThan = job.FormatDuration(alarm.OlderThan)
	}
	if !s.OldestDue.IsZero() {
		b.OldestDueAt = new(moment(s.OldestDue))
	}
	n := newCallback(&alarm.Callback, t.Namespace, t.Name, b)
	n.ID, n.Kind, n.Origin = "rb:"+job.NewID(time.Now(), d.store.ShardOf(n.Queue)), job.KindAlarm, t.Name
	return d.outboxEntry(n)
}
