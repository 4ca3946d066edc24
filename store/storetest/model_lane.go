package storetest

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// limits returns the effective limits of a queue.
func (s *modelShard) limits(name job.Queue) policy.Limits {
	return s.documents[store.LaneKey(name)].limits.Over(s.model.limits(topicName{name.Namespace, name.Topic}))
}

// blocked reports whether nothing can be claimed now.
func (s *modelShard) blocked(q *queue, now time.Time) bool { return s.blockedAhead(q, 0, now) }

// blockedAhead is blocked for a caller that may have ahead jobs beyond the lane's concurrency.
func (s *modelShard) blockedAhead(q *queue, ahead int, now time.Time) bool {
	at, ever := s.freeAt(q, ahead, now)
	return !ever || at.After(now)
}

// freeAt returns when cooldown and rate allow the next claim; not ever: the queue is paused, or at its concurrency and
// ahead.
func (s *modelShard) freeAt(q *queue, ahead int, now time.Time) (at time.Time, ever bool) {
	limits := s.limits(q.name)
	most := limits.Concurrency + ahead
	if q.breakerIsOpen(now) {
		most = 1
	}
	if limits.Paused || len(q.claimed.items) >= most {
		return time.Time{}, false
	}
	at = q.cooldownUntil
	if room := q.window.freeAt(limits.Rate, now); room.After(at) {
		at = room
	}
	return at, true
}

// breakerIsOpen reports whether a queue's breaker is open. It closes BreakerRetention after its cooldown, unless a job
// is claimed.
func (q *queue) breakerIsOpen(now time.Time) bool {
	return q.open && (len(q.claimed.items) > 0 || !now.After(q.cooldownUntil.Add(store.BreakerRetention)))
}

// changeLane applies a change to a lane.
func (s *modelShard) changeLane(q *queue, change store.LaneChange, now time.Time) {
	q.open = q.breakerIsOpen(now)
	if change.Cooldown > 0 {
		if until := after(s.model.ceil(), change.Cooldown); until.After(q.cooldownUntil) {
			q.cooldownUntil, q.cooldownCause = until, change.Cause
		}
	}
	switch change.Breaker {
	case store.OpenBreaker:
		q.open = true
		if now.After(q.cooldownUntil) { // BreakerRetention starts now
			q.cooldownUntil = now
		}
	case store.CloseBreaker:
		q.open = false
	case store.KeepBreaker:
	}
}
