package storetest

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
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
	found.History = r.job.History
	return found, nil
}

// Known searches jobs and known ids.
func (s *modelShard) Known(ctx context.Context, refs []job.Ref) ([]bool, error) {
	m := s.model
	bound(len(refs))
	if _, err := m.open(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	known := make([]bool, len(refs))
	for i, ref := range refs {
		known[i] = s.jobs[ref] != nil || s.ids[ref] != nil
	}
	return known, nil
}

// position is the place of a job in a list: by lane, time of the state, and id.
type position struct {
	lane string
	ms   int64
	id   string
}

func (a position) compare(b position) int {
	return cmp.Or(cmp.Compare(a.lane, b.lane), cmp.Compare(a.ms, b.ms), cmp.Compare(a.id, b.id))
}

func (a position) cursor() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s/%d/%s", a.lane, a.ms, a.id))
}

func parsePosition(cursor string) (position, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := strings.Split(string(text), "/")
	if err != nil || len(parts) != 3 {
		return position{}, store.ErrCursor
	}
	ms, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return position{}, store.ErrCursor
	}
	return position{parts[0], ms, parts[2]}, nil
}

// List returns a page of the matching jobs.
func (s *modelShard) List(ctx context.Context, f store.Filter) (store.Page, error) {
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return store.Page{}, err
	}
	defer m.mu.Unlock()
	var from position
	if f.Cursor != "" {
		if from, err = parsePosition(f.Cursor); err != nil {
			return store.Page{}, err
		}
	}
	type hit struct {
		position
		job job.Job
	}
	var hits []hit
	for r := range s.jobsOf(topicName{f.Namespace, f.Topic}) {
		j := r.view(now)
		at := timeOfState(j)
		h := hit{position{j.Lane, at.UnixMilli(), j.ID}, j}
		if matches(f, j, at) && (f.Cursor == "" || h.compare(from) > 0) {
			hits = append(hits, h)
		}
	}
	slices.SortFunc(hits, func(a, b hit) int { return a.compare(b.position) })
	var page store.Page
	for i, h := range hits {
		if i == f.Limit {
			page.Cursor = hits[i-1].cursor()
			break
		}
		h.job.Body = nil
		page.Jobs = append(page.Jobs, h.job)
	}
	return page, nil
}

func timeOfState(j job.Job) time.Time {
	if j.State.Ended() {
		return j.FinishedAt
	}
	return j.DueAt
}

func matches(f store.Filter, j job.Job, at time.Time) bool {
	if f.Label != "" {
		if value, ok := j.Labels[f.Label]; !ok || value != f.Value {
			return false
		}
	}
	return j.State == f.State &&
		(f.Reason == "" || f.Reason == j.Reason) &&
		(f.Status == 0 || f.Status == j.Status) &&
		(f.Lane == "" || f.Lane == j.Lane) &&
		(f.After.IsZero() || !at.Before(f.After)) &&
		(f.Before.IsZero() || at.Before(f.Before))
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
	if len(f.Topics) > 0 {
		return s.countTopics(ctx, f.Namespace, func(name string) bool { return slices.Contains(f.Topics, name) })
	}
	all, err := s.countTopics(ctx, f.Namespace, func(name string) bool { return name > f.After && !isInternal(name) })
	return all[:min(len(all), f.Limit)], err
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

// isInternal reports whether the jobs of a topic are Ringback's own.
func isInternal(topic string) bool { return store.GroupOf(topic) == store.GroupInternal }

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
	}
	if q.cooldownUntil.After(now) {
		row.CooldownUntil = q.cooldownUntil
	}
	return row
}

// LaneStats leaves out lanes without unfinished jobs.
func (s *modelShard) LaneStats(ctx context.Context, namespace, topic, after string, limit int) ([]store.LaneStats, error) {
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
