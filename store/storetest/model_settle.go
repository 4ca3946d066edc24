package storetest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Settle ends attempts and, with next, claims under the same token.
func (s *modelShard) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	m := s.model
	bound(len(items))
	now, err := m.open(ctx)
	if err != nil {
		return nil, store.ClaimResult{}, err
	}
	defer m.mu.Unlock()
	type answer struct {
		errs   []error
		health []store.HealthChange
	}
	settled, _ := once(s, now, call{"settle", token}, func() (a answer, _ error) {
		a.errs = make([]error, len(items))
		for i, item := range items {
			a.errs[i] = s.settle(item, now)
		}
		counts := store.CountAttempts(items, a.errs, func(q job.Queue) bool { return s.queues[q].health != nil })
		for _, c := range counts {
			q := s.queues[c.Queue]
			before := q.health
			q.health = before.After(now, c.HealthCount, c.Newest)
			s.countLane(q, c.HealthCount, now)
			a.health = append(a.health, store.HealthChange{Queue: c.Queue, Before: before, After: q.health})
		}
		return a, nil
	})
	claimed := store.ClaimResult{Revision: m.revisions[store.KindTopic]}
	if next != nil {
		claimed = s.claim(cmp.Or(next.Token, token), *next, now)
	}
	claimed.Health = settled.health
	return settled.errs, claimed, nil
}

func (s *modelShard) settle(item store.Settlement, now time.Time) error {
	r := s.jobs[item.Ref]
	if r == nil || r.place != &r.queue.claimed || r.lease != item.Lease || r.queue.name != item.Queue {
		return store.ErrLeaseLost
	}
	q := r.queue
	if item.Extend > 0 {
		if until := after(now, item.Extend); until.After(r.deadline) {
			s.remove(r) // its set is in order of the deadlines
			r.deadline = until
			s.placeIn(r, &q.claimed)
			s.reschedule(q, now, false)
		}
		if r.job.CancelRequested {
			return store.ErrCancelRequested
		}
		return nil
	}
	counts := store.CountSettlement(&item, r.job.CancelRequested)
	s.countHistory(q.name, &counts, now)
	freed := s.blocked(q, now)
	s.changeLane(q, item.LaneChange, now)
	if item.Attempt.Kind != "" {
		attempt := item.Attempt
		if r.job.CancelRequested {
			attempt = item.CancelledAttempt()
		}
		r.addAttempt(attempt)
	}
	if item.Verdict.Kind == policy.Delivered || !r.job.CancelRequested {
		s.writeOutbox(item.Outbox)
	}
	if item.Attempt.Kind == job.KindAttempt {
		r.job.Attempts++
		r.job.ConsecutiveLost = 0
		r.job.SetAnswer(item.Attempt.Answer())
		if item.Verdict.Kind != policy.Delivered {
			r.job.FailedAttempts++
		}
	}
	if len(item.Body) > job.MaxBody {
		panic("storetest: a settlement with a body of more than job.MaxBody")
	}
	if body := item.NewBody(r.job.CancelRequested); body != nil {
		s.remove(r) // its set counts the bytes of the body that it has had
		r.job.Body = bytes.Clone(body)
	}
	switch kind := item.Verdict.Kind; {
	case kind == policy.Delivered:
		s.end(r, job.Delivered, "", now)
	case r.job.CancelRequested:
		s.end(r, job.Cancelled, job.ReasonCancelled, now)
	case kind == policy.Dead:
		s.end(r, job.Dead, item.Verdict.Reason, now)
	case kind == policy.Again, kind == policy.Released:
		s.remove(r)
		r.lease = ""
		r.job.State, r.job.DueAt = job.Scheduled, after(now, item.Verdict.Wait)
		s.placeIn(r, &q.due)
	default:
		panic(fmt.Sprintf("storetest: a settlement with verdict %v", kind))
	}
	if freed && !s.blocked(q, now) && q.claimable(now) != nil {
		s.notify(q, now)
	}
	s.reschedule(q, now, true)
	return nil
}

// countHistory adds to the history of a topic and of its namespace.
func (s *modelShard) countHistory(q job.Queue, counts *store.HistoryCounts, now time.Time) {
	if isInternal(q.Topic) || *counts == (store.HistoryCounts{}) {
		return
	}
	s.addHistory(q.Namespace, q.Topic, counts, now)
	s.addHistory(q.Namespace, store.AllTopics, counts, now)
}

func (s *modelShard) addHistory(namespace, topic string, counts *store.HistoryCounts, now time.Time) {
	name := topicName{namespace, topic}
	if s.history[name] == nil {
		s.history[name] = &store.History{Topic: topic}
	}
	s.history[name].Merge(&store.History{
		Minutes: []store.HistoryBucket{{At: now.Truncate(time.Minute), HistoryCounts: *counts}},
		Hours:   []store.HistoryBucket{{At: now.Truncate(time.Hour), HistoryCounts: *counts}},
	})
	*s.history[name] = s.history[name].Recent(now)
}

// countLane adds attempts to the history of a lane that has health, if it has a place.
func (s *modelShard) countLane(q *queue, counts policy.HealthCount, now time.Time) {
	topic := topicName{q.name.Namespace, q.name.Topic}
	if q.health == nil || isInternal(q.name.Topic) {
		return
	}
	if s.places[topic] == nil {
		s.places[topic] = make(store.LanePlaces)
	}
	if s.places[topic].Take(q.name.Lane, now) {
		s.addHistory(q.name.Namespace, store.LaneHistory(q.name),
			&store.HistoryCounts{Delivered: counts.Delivered, Failed: counts.Failed}, now)
	}
}

// end ends a job.
func (s *modelShard) end(r *record, state job.State, reason policy.Reason, now time.Time) {
	s.remove(r)
	r.lease = ""
	r.job.State, r.job.Reason, r.job.FinishedAt, r.job.CancelRequested = state, reason, now, false
	t := r.queue.topic
	switch state {
	case job.Delivered:
		t.delivered++
		s.placeIn(r, &t.done)
	case job.Cancelled:
		t.cancelled++
		s.placeIn(r, &t.done)
	default:
		t.died++
		s.placeIn(r, &t.dead)
	}
	if id := s.ids[r.job.Ref()]; id != nil {
		id.state, id.finishedAt, id.reason = state, now, reason
	}
}
