package pool

import "time"

// attempts are those being made, the oldest first.
type attempts struct {
	first, last *attempt
}

func (l *attempts) push(a *attempt) {
	a.before, a.after = l.last, nil
	if l.last == nil {
		l.first = a
	} else {
		l.last.after = a
	}
	l.last = a
}

func (l *attempts) remove(a *attempt) {
	if a.before == nil {
		l.first = a.after
	} else {
		a.before.after = a.after
	}
	if a.after == nil {
		l.last = a.before
	} else {
		a.after.before = a.before
	}
	a.before, a.after = nil, nil
}

// watch notes that an attempt is being made from now on. Its lane counts as slow from when it hangs: what a receiver that
// never answers is must not be learned from its timeout, which can be ten minutes. p.mu is held.
func (p *Pool) watch(a *attempt, now time.Time) {
	a.started = now
	p.started.push(a)
	if !p.watching && !p.stopping {
		p.watching = true
		p.hangs.Reset(slowAnswer)
	}
}

// unwatch notes that an attempt has ended, or is not made. p.mu is held.
func (p *Pool) unwatch(a *attempt) {
	switch {
	case a.started.IsZero(): // it has only waited for a worker
	case a.hangs:
		p.hanging--
		a.lane.hanging--
		a.lane.judge()
	default:
		p.started.remove(a)
	}
}

// noteHanging moves the lanes of attempts that are under way for too long to the slow ones. The timer then runs for the next:
// once a second at most, and not while no attempt is being made.
func (p *Pool) noteHanging() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for a := p.started.first; a != nil && now.Sub(a.started) >= slowAnswer; a = p.started.first {
		p.started.remove(a)
		a.hangs = true
		p.hanging++
		a.lane.hanging++
		a.lane.judge()
	}
	p.watching = p.started.first != nil && !p.stopping
	if p.watching {
		p.hangs.Reset(p.started.first.started.Add(slowAnswer).Sub(now))
	}
}
