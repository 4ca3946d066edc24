package pool

import (
	"time"

	"github.com/ringback/ringback/policy"
)

// The slack of starts under a rate: how long after the call that granted them they may begin. It is counted into the
// rate's window, so it costs speed; an attempt that comes later is released, which costs more.
const (
	leastSlack = 10 * time.Millisecond
	mostSlack  = 3 * tripTimeout
	// firstLag is what is assumed of trips before one was made: the first opens connections.
	firstLag = 100 * time.Millisecond
)

// slack is what calls that take lag, and workers as busy as of late, need. A 64th of the window is always given: so much
// is lost to a late start, and so little to the slack. p.mu is held.
func (p *Pool) slack(lag time.Duration, rate policy.Rate) time.Duration {
	return min(max(leastSlack, 4*lag, p.late, min(rate.Per/64, time.Second)), mostSlack)
}

// wasLate widens the slack after a start that came too late, once for all that came with it; onTime narrows it again, by
// half in some seconds. p.mu is held.
func (p *Pool) wasLate() {
	if now := time.Now(); now.Sub(p.widened) > p.late {
		p.late, p.widened = min(max(2*p.late, 2*leastSlack), mostSlack), now
	}
}

// lateHalves is in what time without a late start the slack's excess goes by half, about.
const lateHalves = 5 * time.Second

func (p *Pool) onTime() {
	if p.late == 0 {
		return
	}
	now := time.Now()
	past := min(now.Sub(p.narrowed), lateHalves)
	p.narrowed = now
	if p.late -= time.Duration(float64(p.late) * float64(past) / float64(2*lateHalves)); p.late < leastSlack {
		p.late = 0
	}
}
