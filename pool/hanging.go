package pool

import "time"

// watch notes that an attempt is being made from now on. Its lane counts as slow from when it hangs: what a receiver that
// never answers is must not be learned from its timeout, which can be ten minutes. p.mu is held.
func (p *Pool) watch(a *attempt, now time.Time) {
	a.started, a.element = now, p.started.PushBack(a)
	if !p.watching && !p.stopping {
		p.watching = true
		p.hangs.Reset(slowAnswer)
	}
}

// unwatch notes that an attempt has ended, is not made, or has only waited for a worker. p.mu is held.
func (p *Pool) unwatch(a *attempt) {
	switch {
	case a.element != nil:
		p.started.Remove(a.element)
	case a.hangs:
		p.hanging--
		a.lane.hanging--
		a.lane.judge()
	}
}

// noteHanging moves the lanes of attempts that are under way for too long to the slow ones. The timer then runs for the next:
// once a second at most, and not while no attempt is being made.
func (p *Pool) noteHanging() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watching = false
	for now := time.Now(); p.started.Len() > 0; {
		a, _ := p.started.Front().Value.(*attempt)
		if left := slowAnswer - now.Sub(a.started); left > 0 {
			if p.watching = !p.stopping; p.watching {
				p.hangs.Reset(left)
			}
			return
		}
		p.started.Remove(a.element)
		a.element, a.hangs = nil, true
		p.hanging++
		a.lane.hanging++
		a.lane.judge()
	}
}
