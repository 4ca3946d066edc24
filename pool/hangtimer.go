package pool

import "time"

// startHangTimer notes that an attempt is being made from now on. Its lane counts as slow from when it hangs: what a receiver that
// never answers is must not be learned from its timeout, which can be ten minutes. p.mu is held.
func (p *Pool) startHangTimer(a *attempt, now time.Time) {
	a.started, a.runningElement = now, p.running.PushBack(a)
	if !p.hangTimerSet && !p.stopping {
		p.hangTimerSet = true
		p.hangTimer.Reset(slowAfter)
	}
}

// stopHangTimer notes that an attempt has ended, is not made, or has only waited for a worker. p.mu is held.
func (p *Pool) stopHangTimer(a *attempt) {
	switch {
	case a.runningElement != nil:
		p.running.Remove(a.runningElement)
	case a.hanging:
		p.hanging--
		a.lane.hanging--
		a.lane.updateHealth()
	}
}

// markHanging moves the lanes of attempts that are under way for too long to the slow ones. The timer then runs for the next:
// once a second at most, and not while no attempt is being made.
func (p *Pool) markHanging() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hangTimerSet = false
	for now := time.Now(); p.running.Len() > 0; {
		a, _ := p.running.Front().Value.(*attempt)
		if left := slowAfter - now.Sub(a.started); left > 0 {
			if p.hangTimerSet = !p.stopping; p.hangTimerSet {
				p.hangTimer.Reset(left)
			}
			return
		}
		p.running.Remove(a.runningElement)
		a.runningElement, a.hanging = nil, true
		p.hanging++
		a.lane.hanging++
		a.lane.updateHealth()
	}
}
