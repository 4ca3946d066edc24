package pool

import (
	"time"

	"github.com/ringback/ringback/pool/sched"
)

// armHangTimer sets the timer for hanging attempts, unless it is set. The caller holds the pool's mutex.
func (p *Pool) armHangTimer() {
	if !p.hangTimerSet && !p.stopping {
		p.hangTimerSet = true
		p.hangTimer.Reset(sched.SlowAfter)
	}
}

// markHanging marks the lanes of hanging attempts as slow, and sets the timer for the next attempt.
func (p *Pool) markHanging() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	next := p.scheduler.MarkHanging(now)
	if p.hangTimerSet = !next.IsZero() && !p.stopping; p.hangTimerSet {
		p.hangTimer.Reset(next.Sub(now))
	}
}
