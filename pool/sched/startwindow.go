package sched

import (
	"time"

	"github.com/ringback/ringback/policy"
)

// startWindow adapts how long after the call that granted them starts under a rate may begin. It is counted into the
// rate's window, so it costs speed; an attempt that comes later is released, which costs more.
type startWindow struct {
	lateness time.Duration // excess after starts that came too late
	grewAt   time.Time
	fellAt   time.Time
}

const (
	minStartWindow = 10 * time.Millisecond
	maxStartWindow = 30 * time.Second
	// latenessHalfLife is in what time without a late start the excess halves, about.
	latenessHalfLife = 5 * time.Second
)

// length returns the window for calls that take callTime. A 64th of the rate's window is always given.
func (w *startWindow) length(callTime time.Duration, rate policy.Rate) time.Duration {
	return min(max(minStartWindow, 4*callTime, w.lateness, min(rate.Per/64, time.Second)), maxStartWindow)
}

// widen grows the window after a start that came too late, once for all that came with it.
func (w *startWindow) widen(now time.Time) {
	if now.Sub(w.grewAt) > w.lateness {
		w.lateness, w.grewAt = min(max(2*w.lateness, 2*minStartWindow), maxStartWindow), now
	}
}

// narrow shrinks the excess by the time that has passed.
func (w *startWindow) narrow(now time.Time) {
	if w.lateness == 0 {
		return
	}
	past := min(now.Sub(w.fellAt), latenessHalfLife)
	w.fellAt = now
	if w.lateness -= time.Duration(float64(w.lateness) * float64(past) / float64(2*latenessHalfLife)); w.lateness <
		minStartWindow {
		w.lateness = 0
	}
}

// LateStart notes that an attempt could not begin before its StartBy.
func (s *Scheduler) LateStart(now time.Time) { s.window.widen(now) }
