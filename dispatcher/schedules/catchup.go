package schedules

import (
	"slices"
	"time"

	"github.com/ringback/ringback/store"
)

const (
	// punctual is how late a tick may be that runs whatever CatchUp says. It outlives a few leases, so that a process
	// that dies in a step costs no tick.
	punctual = time.Minute
	// maxMissed bounds the missed ticks of a cron text that one step counts, so that it ends soon after a year.
	maxMissed = 10_000
)

// findDue decides which of the ticks that are due run. next is the first of them.
func (s *step) findDue(next time.Time) *dueTicks {
	d := &dueTicks{MissedUntil: s.Passed, Until: s.dueUntil(s.claimedAt)}
	onTime := s.dueUntil(s.claimedAt.Add(-punctual))
	if next.After(onTime) {
		return d
	}
	newest, _ := s.last(d.Until)
	window := max(s.doc.CatchUp.Window, punctual)
	runs := s.doc.CatchUp.Runs
	if s.doc.Paused {
		runs = store.CatchUpNone
	}
	switch runs {
	case store.CatchUpAll:
		// Older ticks than the newest ones of the window are missed.
		d.MissedUntil = newest
		for range store.MaxCatchUp {
			tick, ok := s.last(d.MissedUntil)
			if !ok || s.isLate(tick, window) || !tick.After(s.Passed) {
				break
			}
			d.MissedUntil = tick.Add(-1)
		}
	case store.CatchUpLast:
		d.MissedUntil = onTime
		if !newest.After(onTime) {
			if d.MissedUntil = newest; !s.isLate(newest, window) {
				d.MissedUntil = newest.Add(-1)
			}
		}
	default:
		d.MissedUntil = onTime
	}
	if d.MissedUntil.Before(s.Passed) {
		d.MissedUntil = s.Passed
	}
	return d
}

// skipMissed counts ticks that are missed, and reports whether it has counted all of them. It records the newest ones
// only.
func (s *step) skipMissed() bool {
	n, last := s.count(s.Passed, s.Due.MissedUntil, maxMissed)
	var newest []time.Time
	for tick, ok := last, n > 0; ok && tick.After(s.Passed) &&
		len(newest) < store.MaxScheduleTicks; tick, ok = s.last(tick.Add(-1)) {
		newest = append(newest, tick)
	}
	s.Counts.Missed += n - int64(len(newest))
	for _, tick := range slices.Backward(newest) {
		s.record(store.ScheduleTick{At: tick, Outcome: store.TickMissed, Reason: "no process was there in time"})
	}
	next, in := s.next(s.Passed)
	return in == nil || next.After(s.Due.MissedUntil)
}
