package storetest

import (
	"time"

	"github.com/ringback/ringback/job"
)

// Step sets the clock ahead or back without time passing. All that the clock is used for but due times moves along, as
// store.CarryResult.ClockStep says.
func (m *Model) Step(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clock := m.now
	for _, s := range m.shards {
		s.readyAll(job.Millis(clock()))
	}
	m.now = func() time.Time { return clock().Add(d) }
	for _, s := range m.shards {
		s.step(d)
	}
}

// Clock returns the time that the clock shows.
func (m *Model) Clock() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now()
}

// readyAll moves the due jobs to ready, so that they stay due when the clock is set back.
func (s *modelShard) readyAll(now time.Time) {
	for _, q := range s.queues {
		for r := q.due.first(); r != nil && !r.job.DueAt.After(now) && !q.isOrdered(); r = q.due.first() {
			s.placeIn(r, &q.ready)
		}
	}
}

func (s *modelShard) step(d time.Duration) {
	s.stepped += d
	s.leader.until = moved(s.leader.until, d)
	for c, r := range s.replies {
		r.at = r.at.Add(d)
		s.replies[c] = r
	}
	for _, w := range s.permits {
		w.step(d)
	}
	now := job.Millis(s.model.now())
	for _, q := range s.queues {
		q.notifiedAt, q.cooldownUntil = moved(q.notifiedAt, d), moved(q.cooldownUntil, d)
		q.window.step(d)
		for _, r := range q.claimed.items {
			r.deadline, r.claimed = r.deadline.Add(d), r.claimed.Add(d)
		}
		s.reschedule(q, now, true)
	}
}

func (w window) step(d time.Duration) {
	for i := range w {
		w[i].latest = w[i].latest.Add(d)
	}
}

// moved moves an instant, unless it is zero.
func moved(at time.Time, d time.Duration) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(d)
}
