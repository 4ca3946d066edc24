package dispatcher

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

const (
	// backlogInterval is the interval at which the carrier of a topic's shard checks its backlog.
	backlogInterval = 5 * time.Second
	// backlogReload is the interval at which that process reloads the policies: without claims it sees no new revision.
	backlogReload = 30 * time.Second
	// backlogOverChecks is the number of consecutive checks below the limits that end a backlog.
	backlogOverChecks = 2
	// backlogMaxResets is the number of topics without on_backlog whose alarm one check clears in the store: each once
	// per leadership.
	backlogMaxResets = 64
)

// alarmState is the known state of a topic's alarm.
type alarmState struct {
	known     bool      // the other fields agree with the store; else a call failed that may have taken effect
	raised    bool      // the alarm, as it was before that call
	url       string    // notified when the alarm was raised
	term      int64     // as the carrier of its shard: before it, others may have raised or cleared the alarm
	since     time.Time // when this process began to monitor the topic
	overCount int       // checks in a row that found the alarm raised and no backlog
	setAt     time.Time // when this process set the alarm
	confirmed bool      // it was set so again backlogReload later: no call of another process came late
}

// backlogMonitor raises and clears the alarms of topics.
type backlogMonitor struct {
	*Dispatcher

	topics map[documents.Name]*alarmState // of the shards that this process carries
	failed store.Backoff
}

// monitorBacklogs raises and clears the alarms of topics until ctx ends. The store keeps whether an alarm is raised, so
// that exactly one callback is sent whichever process checks.
func (d *Dispatcher) monitorBacklogs(ctx context.Context) {
	m := &backlogMonitor{Dispatcher: d, topics: make(map[documents.Name]*alarmState)}
	tick := time.NewTicker(backlogInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch err := m.check(ctx); {
		case err == nil:
			m.failed.Reset()
		case ctx.Err() == nil:
			d.log.Log(ctx, m.failed.Level(), "backlog check failed, retrying", "err", err)
			m.failed.Next()
		}
	}
}

// check checks all topics once, for at most backlogInterval.
func (m *backlogMonitor) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, backlogInterval)
	defer cancel()
	maxAge := documents.AnyAge
	if m.leadsAnyShard() {
		maxAge = backlogReload
	}
	set, err := m.policies.Snapshot(ctx, maxAge)
	if err != nil {
		return err
	}
	maps.DeleteFunc(m.topics, func(name documents.Name, _ *alarmState) bool { return set.Values[name] == nil })
	watched := make(map[string][]store.Topic) // by namespace
	var unsure []store.Topic                  // without on_backlog, but possibly with an alarm raised
	for name, topic := range set.Values {
		t := topic.Stored
		term := m.carrier.Term(m.store.ShardOfTopic(name.Namespace, name.Name))
		if term == 0 {
			delete(m.topics, name)
			continue
		}
		a := m.topics[name]
		if a == nil || a.term != term {
			a = &alarmState{term: term, since: time.Now()}
			m.topics[name] = a
		}
		switch {
		// The topic of callbacks has no alarm: its callback would add to the backlog.
		case t.Policy.OnBacklog != nil && name.Name != job.CallbackTopic:
			watched[name.Namespace] = append(watched[name.Namespace], t)
		case t.Unreadable: // its alarm stays as it is
		case a.known && a.raised, !a.known && set.LoadedAt.After(a.since) && len(unsure) < backlogMaxResets:
			unsure = append(unsure, t)
		}
	}
	var failed error
	for namespace, topics := range watched {
		if err := m.evaluate(ctx, namespace, topics); err != nil {
			failed = err
		}
	}
	for _, t := range unsure { // a later on_backlog starts without an alarm
		if err := m.setAlarm(ctx, t, m.topics[documents.Name{Namespace: t.Namespace, Name: t.Name}], false); err !=
			nil {
			return err
		}
	}
	return failed
}

// leadsAnyShard reports whether this process is the carrier of a shard.
func (d *Dispatcher) leadsAnyShard() bool {
	for shard := range d.store.Shards() {
		if d.carrier.Term(shard) != 0 {
			return true
		}
	}
	return false
}

// evaluate checks the topics of a namespace that have on_backlog, store.MaxBatch of them per call to the store.
func (m *backlogMonitor) evaluate(ctx context.Context, namespace string, topics []store.Topic) error {
	rows := make(map[string]store.TopicStats, len(topics))
	for part := range slices.Chunk(topics, store.MaxBatch) {
		f := store.StatsFilter{Namespace: namespace, Topics: make([]string, len(part))}
		for i, t := range part {
			f.Topics[i] = t.Name
		}
		stats, err := m.store.TopicStats(ctx, f)
		if err != nil {
			return err
		}
		for _, s := range stats {
			rows[s.Topic] = s
		}
	}
	var failed error
	for _, t := range topics {
		if err := m.evaluateTopic(ctx, t, m.topics[documents.Name{Namespace: namespace, Name: t.Name}],
			rows[t.Name]); err != nil {
			failed = err
		}
	}
	return failed
}

// evaluateTopic raises or clears the alarm of a topic. It clears an alarm after backlogOverChecks checks in a row
// without a backlog, so that a backlog near its limit does not cause a callback at every check.
func (m *backlogMonitor) evaluateTopic(ctx context.Context, t store.Topic, a *alarmState, s store.TopicStats) error {
	var age time.Duration
	if !s.OldestDue.IsZero() {
		age = max(0, time.Since(s.OldestDue))
	}
	alarm := t.Policy.OnBacklog
	now := alarm.Exceeded(age, s.Scheduled+s.Ready+s.Running)
	if a.raised && a.url != alarm.URL {
		if err := m.setAlarm(ctx, t, a, false); err != nil { // the new URL was not notified
			return err
		}
	}
	switch {
	case a.known && a.raised == now && (a.confirmed || time.Since(a.setAt) < backlogReload):
		a.overCount = 0
		return nil
	case !now:
		if a.overCount++; a.overCount < backlogOverChecks {
			return nil
		}
	}
	return m.setAlarm(ctx, t, a, now, m.newBacklogJob(&t, now, &s))
}

// setAlarm stores the state of an alarm. If it changed, the store enqueues the callback in the same step. A call that
// an earlier carrier of the shard made may come after it, so it is repeated once.
func (m *backlogMonitor) setAlarm(
	ctx context.Context, t store.Topic, a *alarmState, raised bool, callbacks ...store.NewJob,
) error {
	_, err := m.store.Shards()[m.store.ShardOfTopic(t.Namespace, t.Name)].Alarm(ctx, store.NewToken(), store.Alarm{
		Namespace: t.Namespace, Topic: t.Name, Raised: raised, Outbox: callbacks,
	})
	if err != nil {
		a.known = false // the call may have taken effect
		return err
	}
	*a = alarmState{
		known: true, raised: raised, term: a.term, setAt: time.Now(), confirmed: a.known && a.raised == raised,
	}
	if raised {
		a.url = t.Policy.OnBacklog.URL
	}
	return nil
}

// newBacklogJob returns the callback about a backlog.
func (d *Dispatcher) newBacklogJob(t *store.Topic, exceeded bool, s *store.TopicStats) store.NewJob {
	n := backlogCallback(t, exceeded, s, time.Now())
	n.Lane = laneOf(n.URL)
	n.ID = "rb:" + job.NewID(time.Now(), d.store.ShardOf(n.Queue))
	return d.outboxEntry(&n)
}
