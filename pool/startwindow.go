package pool

import (
	"time"

	"github.com/ringback/ringback/policy"
)

// The slack of starts under a rate: how long after the call that granted them they may begin. It is counted into the
// rate's window, so it costs speed; an attempt that comes later is released, which costs more.
const (
	minStartWindow = 10 * time.Millisecond
	maxStartWindow = 3 * callTimeout
	// initialCallTime is what is assumed of trips before one was made: the first opens connections.
	initialCallTime = 100 * time.Millisecond
)

// startWindow is what calls that take lag, and workers as busy as of late, need. A 64th of the window is always given: so much
// is lost to a late start, and so little to the slack. p.mu is held.
func (p *Pool) startWindow(lag time.Duration, rate policy.Rate) time.Duration {
	return min(max(minStartWindow, 4*lag, p.lateness, min(rate.Per/64, time.Second)), maxStartWindow)
}

// widenStartWindow widens the slack after a start that came too late, once for all that came with it; onTime narrows it again, by
// half in some seconds. p.mu is held.
func (p *Pool) widenStartWindow() {
	if now := time.Now(); now.Sub(p.latenessGrew) > p.lateness {
		p.lateness, p.latenessGrew = min(max(2*p.lateness, 2*minStartWindow), maxStartWindow), now
	}
}

// latenessHalfLife is in what time without a late start the slack's excess goes by half, about.
const latenessHalfLife = 5 * time.Second

func (p *Pool) narrowStartWindow() {
	if p.lateness == 0 {
		return
	}
	now := time.Now()
	past := min(now.Sub(p.latenessFell), latenessHalfLife)
	p.latenessFell = now
	if p.lateness -= time.Duration(float64(p.lateness) * float64(past) / float64(2*latenessHalfLife)); p.lateness < minStartWindow {
		p.lateness = 0
	}
}
