package storetest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// claimReply is the stored result of a claim. A repeated call returns the jobs that are still leased.
type claimReply struct {
	records []*record
	queues  []store.QueueStatus
}

// Claim leases jobs to the caller.
func (s *modelShard) Claim(
	ctx context.Context, token store.Token, request store.ClaimRequest,
) (store.ClaimResult, error) {
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return store.ClaimResult{}, err
	}
	defer m.mu.Unlock()
	return s.claim(token, request, now), nil
}

func (s *modelShard) claim(token store.Token, request store.ClaimRequest, now time.Time) store.ClaimResult {
	bound(len(request.Queues))
	bound(request.Max)
	t, _ := once(s, now, call{"claim", token}, func() (*claimReply, error) {
		t := &claimReply{queues: make([]store.QueueStatus, 0, len(request.Queues))}
		size := 0
		for _, w := range request.Queues {
			t.queues = append(t.queues, s.claimQueue(t, &size, token, request, w, now))
		}
		return t, nil
	})
	c := store.ClaimResult{Queues: t.queues, Revision: s.model.revisions[store.KindTopic]}
	for _, r := range t.records {
		if r.place == &r.queue.claimed && r.lease == token {
			c.Jobs = append(c.Jobs, r.claimedJob(now))
		}
	}
	return c
}

// claimQueue claims jobs of one queue. Size is the number of body bytes claimed so far.
func (s *modelShard) claimQueue(
	t *claimReply, size *int, token store.Token, request store.ClaimRequest, w store.QueueClaim, now time.Time,
) store.QueueStatus {
	status := store.QueueStatus{Queue: w.Queue}
	if lane := s.get(store.LaneKey(w.Queue)); lane.Revision != w.LaneRevision {
		status.LaneDocument = &lane
	}
	limits := s.limits(w.Queue)
	q := s.queues[w.Queue]
	if q == nil {
		status.Blocked = limits.Paused
		return status
	}
	q.open = q.breakerIsOpen(now)
	most := w.Max
	if limits.Rate.Limited() {
		q.window.dropOld(limits.Rate.Per, now)
		most = min(most, limits.Rate.Starts-q.window.count(limits.Rate.Per, now))
	}
	ahead := 0
	if !limits.Rate.Limited() && !limits.Ordered && q.leasedOnlyTo(token.Owner()) {
		ahead = w.Ahead
	}
	served := w.Deliver.Same(limits.Deliver)
	for n := 0; ; n++ {
		status.Blocked = s.blocked(q, now)
		r := s.pick(q, now)
		if r == nil || !served || s.blockedAhead(q, ahead, now) {
			break
		}
		tooLarge := len(t.records) > 0 && *size+len(r.job.Body) > request.MaxBytes
		if n == most || len(t.records) == request.Max || tooLarge {
			status.More = !status.Blocked
			break
		}
		*size += len(r.job.Body)
		expired := r.isExpired(now)
		s.remove(r)
		r.lease, r.claimed, r.late = token, now, max(0, now.Sub(r.job.DueAt))
		r.probe, r.rated = q.open, limits.Rate.Limited() && !expired
		if r.rated {
			q.window.add(starts{latest: after(s.model.ceil(), request.Slack), n: 1})
		}
		r.deadline = after(now, cmp.Or(r.job.Timeout, w.Timeout)+request.Margin)
		r.job.State = job.Running
		s.placeIn(r, &q.claimed)
		t.records = append(t.records, r)
	}
	status.BreakerOpen = q.open
	s.reschedule(q, now, true)
	return status
}

// leasedOnlyTo reports whether no claimed job of a queue is leased to another owner.
func (q *queue) leasedOnlyTo(owner store.LeaseOwner) bool {
	return !slices.ContainsFunc(q.claimed.items, func(r *record) bool { return r.lease.Owner() != owner })
}

// pick is claimable, with jobs due in the same millisecond ordered by rank.
func (s *modelShard) pick(q *queue, now time.Time) *record {
	best := q.claimable(now)
	if best == nil || s.model.rank == nil || q.isOrdered() {
		return best
	}
	for _, l := range []*sortedRecords{&q.ready, &q.due} {
		for _, r := range l.items {
			if r.job.DueAt.After(best.job.DueAt) {
				break
			}
			if s.model.rank(r.job.Ref()) < s.model.rank(best.job.Ref()) {
				best = r
			}
		}
	}
	return best
}

func (r *record) claimedJob(now time.Time) store.ClaimedJob {
	return store.ClaimedJob{
		Job:      r.view(now),
		Lease:    r.lease,
		LeaseFor: r.deadline.Sub(now),
		Age:      now.Sub(r.job.FirstDueAt),
		Late:     r.late,
		Rated:    r.rated,
		Probe:    r.probe,
	}
}
