package storetest

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Defaults of CarryOptions.
const (
	defaultCarryQueues = 128
	defaultCarryJobs   = 1024
	defaultCarryReady  = 1024
)

// Carry makes one round.
func (s *modelShard) Carry(
	ctx context.Context, token store.Token, round store.CarryOptions,
) (store.CarryResult, error) {
	if err := round.ExtendLead(ctx); err != nil {
		return store.CarryResult{}, err
	}
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return store.CarryResult{}, err
	}
	defer m.mu.Unlock()
	round.Queues = cmp.Or(round.Queues, defaultCarryQueues)
	round.Jobs = cmp.Or(round.Jobs, defaultCarryJobs)
	round.Ready = cmp.Or(round.Ready, defaultCarryReady)
	return once(s, now, call{"carry", token}, func() (store.CarryResult, error) {
		return s.carry(round, now), nil
	})
}

func (s *modelShard) carry(round store.CarryOptions, now time.Time) store.CarryResult {
	c := store.CarryResult{Now: now, ClockStep: s.stepped}
	s.stepped = 0
	s.outbox = slices.DeleteFunc(s.outbox, func(e store.NewJob) bool { return slices.Contains(round.Relayed, e.Ref()) })
	keepLease := func(r *record) bool {
		return round.KeepLeases || (!round.ExpireLeasesBefore.IsZero() && r.deadline.After(round.ExpireLeasesBefore))
	}

	var visit []*queue
	for len(visit) < round.Queues {
		at, found := s.agenda.head()
		if !found || at.After(now) {
			break
		}
		q := s.agenda[0]
		visit = append(visit, q)
		heap.Pop(&s.agenda)
		q.nextAt = time.Time{}
	}
	for _, q := range visit {
		ordered := q.isOrdered()
		newlyReady := ordered || q.ready.first() == nil || s.blocked(q, now)
		for c.Moved+c.ExpiredLeases < round.Jobs {
			r := q.firstExpired(now, keepLease)
			if r == nil {
				break
			}
			s.expireLease(r, now)
			c.ExpiredLeases++
		}
		if s.blocked(q, now) {
			s.reschedule(q, now, false)
			continue
		}
		for !ordered && c.Moved+c.ExpiredLeases < round.Jobs && len(q.ready.items) < round.Ready {
			r := q.due.first()
			if r == nil || r.job.DueAt.After(now) {
				break
			}
			s.placeIn(r, &q.ready)
			c.Moved++
		}
		if (q.ready.first() != nil || ordered) && q.claimable(now) != nil &&
			(newlyReady || !q.notifiedAt.Add(store.RenotifyAfter).After(now)) {
			if s.isUnread(q) {
				q.notifiedAt = now.Add(store.RenotifyUnreadAfter - store.RenotifyAfter)
			} else {
				s.notify(q, now)
			}
		}
		s.reschedule(q, now, false)
	}

	waiting := s.outbox[min(max(round.SkipOutbox, 0), len(s.outbox)):]
	room := cmp.Or(round.OutboxBytes, store.OutboxBytes)
	for c.OutboxRead < min(len(waiting), store.MaxBatch) {
		e := waiting[c.OutboxRead]
		if room -= len(e.Body); room < 0 && c.OutboxRead > 0 {
			break
		}
		c.OutboxRead++
		c.Outbox = append(c.Outbox, e)
	}
	c.Next = s.untilNext(now, keepLease)
	if c.OutboxRead < len(waiting) {
		c.Next = 0
	}
	return c
}

// firstExpired returns the first claimed job whose lease ended and is not kept.
func (q *queue) firstExpired(now time.Time, keepLease func(*record) bool) *record {
	for _, r := range q.claimed.items {
		if r.deadline.After(now) {
			return nil
		}
		if !keepLease(r) {
			return r
		}
	}
	return nil
}

// untilNext returns the time until the head of the agenda. Leases that this round keeps do not count, since the result
// would stay zero.
func (s *modelShard) untilNext(now time.Time, keepLease func(*record) bool) time.Duration {
	at, found := s.agenda.head()
	if found && !at.After(now) {
		at, found = time.Time{}, false
		for _, q := range s.agenda {
			if next := s.nextTime(q, now, keepLease); !next.IsZero() && (!found || next.Before(at)) {
				at, found = next, true
			}
		}
	}
	if !found {
		return -1
	}
	return max(0, at.Sub(now))
}

// expireLease ends a lost attempt: the job is due again at once, or cancelled if it is marked.
func (s *modelShard) expireLease(r *record, now time.Time) {
	r.job.Attempts++
	r.job.ConsecutiveLost++
	if r.job.ConsecutiveLost > policy.FreeLosses {
		r.job.FailedAttempts++
	}
	r.addAttempt(job.Attempt{
		N: r.job.Attempts, Kind: job.KindLost, StartedAt: r.claimed, Duration: now.Sub(r.claimed),
		Process: string(r.lease.Owner()),
	})
	if r.job.CancelRequested {
		s.end(r, job.Cancelled, job.ReasonCancelled, now)
		return
	}
	s.remove(r)
	r.lease = ""
	r.job.State, r.job.DueAt = job.Scheduled, now
	s.placeIn(r, &r.queue.due)
}
