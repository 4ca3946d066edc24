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

// limits returns the effective limits of a queue.
func (s *modelShard) limits(name job.Queue) policy.Limits {
	topic := s.model.policy(topicName{name.Namespace, name.Topic})
	return s.lanes[name].Settings.Limits().Over(topic.Limits())
}

// blocked reports whether nothing can be claimed now.
func (s *modelShard) blocked(q *queue, now time.Time) bool { return s.blockedAhead(q, 0, now) }

// blockedAhead is blocked for a caller that may have ahead jobs beyond the lane's concurrency.
func (s *modelShard) blockedAhead(q *queue, ahead int, now time.Time) bool {
	at, ever := s.freeAt(q, ahead, now)
	return !ever || at.After(now)
}

// freeAt returns when cooldown and rate allow the next claim; not ever: the queue is paused, or at its concurrency and ahead.
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

// breakerIsOpen reports whether a queue's breaker is open. It closes BreakerRetention after its cooldown, unless a job is
// claimed.
func (q *queue) breakerIsOpen(now time.Time) bool {
	return q.open && (len(q.claimed.items) > 0 || !now.After(q.cooldownUntil.Add(store.BreakerRetention)))
}

// changeLane applies a change to a lane.
func (s *modelShard) changeLane(q *queue, change store.LaneChange, now time.Time) {
	q.open = q.breakerIsOpen(now)
	if change.Cooldown > 0 {
		if until := after(s.model.ceil(), change.Cooldown); until.After(q.cooldownUntil) {
			q.cooldownUntil = until
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

// PutLane writes a lane's settings and reschedules its queue.
func (s *modelShard) PutLane(ctx context.Context, token store.Token, put store.Lane) (store.Lane, error) {
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return store.Lane{}, err
	}
	defer m.mu.Unlock()
	return once(s, now, call{"lane", token}, func() (store.Lane, error) {
		if put.Revision != 0 && max(put.Revision, 0) != s.lanes[put.Queue].Revision {
			return store.Lane{}, store.ErrVersion
		}
		lane := store.Lane{Queue: put.Queue, Settings: cloneLane(put.Settings)}
		if lane.Settings.IsZero() {
			lane.Settings = policy.Lane{}
			delete(s.lanes, put.Queue)
		} else {
			m.laneRevision++
			lane.Revision = m.laneRevision
			s.lanes[put.Queue] = lane
		}
		if q := s.queues[put.Queue]; q != nil {
			q.notifiedAt = time.Time{} // the next round notifies it
			if !s.blocked(q, now) && q.claimable(now) != nil {
				s.notify(q, now)
			}
			s.reschedule(q, now, true)
		}
		lane.Settings = cloneLane(lane.Settings)
		return lane, nil
	})
}

// GetLanes returns settings; revision 0: none.
func (s *modelShard) GetLanes(ctx context.Context, queues []job.Queue) ([]store.Lane, error) {
	m := s.model
	bound(len(queues))
	if _, err := m.open(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	lanes := make([]store.Lane, len(queues))
	for i, name := range queues {
		lanes[i] = s.lane(name)
	}
	return lanes, nil
}

// ListLanes returns a page of the settings of a topic's lanes.
func (s *modelShard) ListLanes(ctx context.Context, namespace, topic, after string, limit int) ([]store.Lane, error) {
	m := s.model
	bound(limit)
	if _, err := m.open(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var lanes []store.Lane
	for name := range s.lanes {
		if name.Namespace == namespace && name.Topic == topic && name.Lane > after {
			lanes = append(lanes, s.lane(name))
		}
	}
	slices.SortFunc(lanes, func(a, b store.Lane) int { return cmp.Compare(a.Queue.Lane, b.Queue.Lane) })
	return lanes[:min(len(lanes), limit)], nil
}

// lane returns a copy of a lane's settings.
func (s *modelShard) lane(name job.Queue) store.Lane {
	lane := s.lanes[name]
	lane.Queue, lane.Settings = name, cloneLane(lane.Settings)
	return lane
}

func cloneLane(l policy.Lane) policy.Lane {
	l.Headers = cloneHeader(l.Headers)
	l.Secrets = slices.Clone(l.Secrets)
	return l
}
