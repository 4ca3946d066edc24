package storetest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Get returns a job with its history.
func (s *modelShard) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return job.Job{}, err
	}
	defer m.mu.Unlock()
	r := s.jobs[ref]
	if r == nil {
		return job.Job{}, store.ErrNotFound
	}
	found := r.view(now)
	found.History, found.Events = r.job.History, r.job.Events
	return found, nil
}

// Known searches jobs and known ids.
func (s *modelShard) Known(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error) {
	m := s.model
	bound(len(refs))
	if _, err := m.open(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	statuses := make([]store.IDStatus, len(refs))
	for i, ref := range refs {
		if r := s.jobs[ref]; r != nil {
			statuses[i].Exists = true
			if r.job.State.Ended() {
				statuses[i].Ended = r.job.State
			}
		} else if id := s.ids[ref]; id != nil {
			statuses[i].Ended = id.state
		}
	}
	return statuses, nil
}

// List looks at the jobs of the filter's topics and states, in order.
func (s *modelShard) List(ctx context.Context, f store.Filter) (store.Page, error) {
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return store.Page{}, err
	}
	defer m.mu.Unlock()
	type listed struct {
		place store.Position
		job   job.Job
	}
	// The model breaks ties by id.
	compare := func(a, b store.Position) int {
		return cmp.Or(a.Compare(b, f.Oldest), cmp.Compare(a.Tie, b.Tie))
	}
	f.After.Shard = 0
	var rest []listed
	for name := range s.topics {
		if name.namespace != f.Namespace || !f.SelectsTopic(name.topic) {
			continue
		}
		for r := range s.jobsOf(name) {
			j := r.view(now)
			if place := store.PositionOf(&j, j.ID); f.SelectsState(j.State) && compare(place, f.After) > 0 {
				rest = append(rest, listed{place, j})
			}
		}
	}
	slices.SortFunc(rest, func(a, b listed) int { return compare(a.place, b.place) })
	var page store.Page
	for _, l := range rest {
		if len(page.Jobs) == f.Limit || page.Scanned == cmp.Or(f.ScanLimit, store.MaxScanLimit) {
			page.More = true
			break
		}
		page.Reached = l.place
		page.Scanned++
		if f.Matches(&l.job) {
			l.job.Body = nil
			page.Jobs, page.Ties = append(page.Jobs, l.job), append(page.Ties, l.place.Tie)
		}
	}
	return page, nil
}

// jobsOf iterates over a topic's jobs.
func (s *modelShard) jobsOf(name topicName) func(yield func(*record) bool) {
	return func(yield func(*record) bool) {
		t := s.topics[name]
		if t == nil {
			return
		}
		sets := []*sortedRecords{&t.done, &t.dead}
		for _, q := range t.lanes {
			sets = append(sets, &q.due, &q.ready, &q.claimed)
		}
		for _, l := range sets {
			for _, r := range l.items {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// TopicStats counts due jobs as ready, also before a carrier moves them.
func (s *modelShard) TopicStats(ctx context.Context, f store.StatsFilter) ([]store.TopicStats, error) {
	wanted := func(name string) bool { return slices.Contains(f.Topics, name) }
	if len(f.Topics) == 0 {
		wanted = func(name string) bool { return name > f.After && !isInternal(name) }
	}
	all, err := s.countTopics(ctx, f.Namespace, wanted)
	if f.NamesOnly {
		for i, t := range all {
			all[i] = store.TopicStats{Namespace: t.Namespace, Topic: t.Topic, Registered: t.Registered}
		}
	}
	if len(f.Topics) == 0 {
		all = all[:min(len(all), f.Limit)]
	}
	return all, err
}

// Totals implements store.Shard.
func (s *modelShard) Totals(ctx context.Context, namespace string) (store.TopicStats, error) {
	m := s.model
	all, err := s.countTopics(ctx, namespace, func(name string) bool { return !isInternal(name) })
	if err != nil {
		return store.TopicStats{}, err
	}
	m.mu.Lock()
	total := s.forgotten[namespace]
	m.mu.Unlock()
	for _, t := range all {
		total = total.Add(t)
	}
	total.Namespace, total.Topic = namespace, ""
	return total, nil
}

// Usage counts jobs.
func (s *modelShard) Usage(ctx context.Context, namespace string) (store.Usage, error) {
	if _, err := s.model.open(ctx); err != nil {
		return store.Usage{}, err
	}
	defer s.model.mu.Unlock()
	var usage store.Usage
	for ref, r := range s.jobs {
		switch {
		case ref.Namespace != namespace, isInternal(r.job.Topic):
		case r.job.State.Ended():
			usage.KeptBytes += store.JobBytes(&r.job.Spec)
		default:
			usage = usage.Add(store.Usage{Jobs: 1, Bytes: store.JobBytes(&r.job.Spec)})
		}
	}
	return usage, nil
}

// isInternal reports whether the jobs of a topic are Ringback's own.
func isInternal(topic string) bool { return store.IsInternal(topic) }

// countTopics counts the topics whose names match.
func (s *modelShard) countTopics(
	ctx context.Context, namespace string, wanted func(name string) bool,
) ([]store.TopicStats, error) {
	now, err := s.model.open(ctx)
	if err != nil {
		return nil, err
	}
	defer s.model.mu.Unlock()
	var all []store.TopicStats
	for name, t := range s.topics {
		if name.namespace != namespace || !wanted(name.topic) || t.registered == 0 {
			continue
		}
		row := store.TopicStats{
			Namespace: namespace, Topic: name.topic,
			Registered: t.registered, Delivered: t.delivered, Dead: t.died, Cancelled: t.cancelled,
		}
		for _, q := range t.lanes {
			c := q.count(now)
			for _, l := range []*sortedRecords{&q.due, &q.ready, &q.claimed} {
				for _, r := range l.items {
					row.Bytes += store.JobBytes(&r.job.Spec)
				}
			}
			row.Scheduled += c.Scheduled
			row.Ready += c.Ready
			row.Running += c.Running
			if c.BreakerOpen {
				row.OpenBreakers++
			}
			for _, l := range []*sortedRecords{&q.ready, &q.due} {
				if r := l.first(); r != nil && (row.OldestDue.IsZero() || r.job.DueAt.Before(row.OldestDue)) {
					row.OldestDue = r.job.DueAt
				}
			}
		}
		all = append(all, row)
	}
	slices.SortFunc(all, func(a, b store.TopicStats) int { return cmp.Compare(a.Topic, b.Topic) })
	return all, nil
}

func (q *queue) count(now time.Time) store.LaneStats {
	isDue, _ := slices.BinarySearchFunc(q.due.items, now, func(r *record, now time.Time) int {
		if r.job.DueAt.After(now) {
			return 1
		}
		return -1
	})
	row := store.LaneStats{
		Lane:        q.name.Lane,
		Scheduled:   int64(len(q.due.items) - isDue),
		Ready:       int64(len(q.ready.items) + isDue),
		Running:     int64(len(q.claimed.items)),
		BreakerOpen: q.breakerIsOpen(now),
		Health:      q.health,
	}
	if q.cooldownUntil.After(now) {
		row.CooldownUntil, row.CooldownCause = q.cooldownUntil, q.cooldownCause
	}
	return row
}

// LaneStats leaves out lanes without unfinished jobs.
func (s *modelShard) LaneStats(
	ctx context.Context, namespace, topic, after string, limit int,
) ([]store.LaneStats, error) {
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	t := s.topics[topicName{namespace, topic}]
	if t == nil {
		return nil, nil
	}
	var rows []store.LaneStats
	for _, q := range t.lanes {
		if row := q.count(now); row.Lane > after && row.Scheduled+row.Ready+row.Running > 0 {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b store.LaneStats) int { return cmp.Compare(a.Lane, b.Lane) })
	return rows[:min(len(rows), limit)], nil
}

// QueueState counts a queue's jobs, and reads its throttles.
func (s *modelShard) QueueState(ctx context.Context, name job.Queue) (store.QueueState, error) {
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return store.QueueState{}, err
	}
	defer m.mu.Unlock()
	state := store.QueueState{LaneStats: store.LaneStats{Lane: name.Lane}, Led: s.leader.until.After(now)}
	if q := s.queues[name]; q != nil {
		state.LaneStats, state.NextStart = q.count(now), q.window.freeAt(s.limits(name).Rate, now)
		if q.isOrdered() {
			next := q.claimed.first()
			if next == nil {
				next, _ = q.turn(now)
			}
			if next != nil {
				state.Next = next.job.Ref()
			}
		}
	}
	return state, nil
}

// TopicState counts a topic's leased jobs.
func (s *modelShard) TopicState(
	ctx context.Context, namespace, topic string, rate policy.Rate,
) (store.TopicState, error) {
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return store.TopicState{}, err
	}
	defer m.mu.Unlock()
	name := topicName{namespace, topic}
	state := store.TopicState{NextStart: s.permits[name].freeAt(rate, now)}
	if t := s.topics[name]; t != nil {
		for _, q := range t.lanes {
			state.Running += int64(len(q.claimed.items))
		}
	}
	return state, nil
}

// ListHealth sorts the lanes that have health.
func (s *modelShard) ListHealth(ctx context.Context, f store.HealthFilter) ([]store.LaneHealth, error) {
	if _, err := s.model.open(ctx); err != nil {
		return nil, err
	}
	defer s.model.mu.Unlock()
	var all []store.LaneHealth
	for name, q := range s.queues {
		if q.health != nil && f.Selects(name, q.health) {
			all = append(all, store.LaneHealth{Queue: name, Health: q.health})
		}
	}
	return f.First(all), nil
}

// ReadHistory returns the history of topics.
func (s *modelShard) ReadHistory(ctx context.Context, namespace string, topics []string) ([]store.History, error) {
	if _, err := s.model.open(ctx); err != nil {
		return nil, err
	}
	defer s.model.mu.Unlock()
	var all []store.History
	for _, topic := range topics {
		one := store.History{Topic: topic}
		if h := s.history[topicName{namespace, topic}]; h != nil {
			one.Merge(h)
		}
		all = append(all, one)
	}
	return all, nil
}
