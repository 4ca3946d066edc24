package unit

import (
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/memory"
)

// SetThrottle replaces a queue's throttle by a copy that do has changed.
func (u *Unit) SetThrottle(q *memory.Queue, do func(*memory.Throttle)) {
	u.Touch(q)
	g := memory.None
	if q.Throttle != nil {
		g = *q.Throttle
	}
	do(&g)
	q.Throttle = &g
	if q.ThrottleExpired(u.Now) && len(g.Starts) == 0 {
		q.Throttle = nil
	}
}

// PruneThrottle drops the expired parts of a queue's throttle before a claim: else an expired breaker would be open
// again with the first running job.
func (u *Unit) PruneThrottle(q *memory.Queue) {
	g := q.Throttle
	if g == nil {
		return
	}
	open, starts := q.BreakerOpen(u.Now), g.Starts
	if rate := q.Limits().Rate; rate.Limited() {
		starts = starts.Counting(rate, u.Now)
	}
	if open != g.Open || len(starts) != len(g.Starts) {
		u.SetThrottle(q, func(g *memory.Throttle) { g.Open, g.Starts = open, starts })
	}
}

// ApplyLaneChange sets the cooldown and the breaker that a settlement asks for.
func (u *Unit) ApplyLaneChange(q *memory.Queue, change store.LaneChange) {
	if change.Cooldown == 0 && change.Breaker == store.KeepBreaker {
		return
	}
	if q.Blocked(u.Now) && q.Waiting > 0 {
		u.Notify(q) // unless it still is when all is done
	}
	open := q.BreakerOpen(u.Now)
	switch change.Breaker {
	case store.OpenBreaker:
		open = true
	case store.CloseBreaker:
		open = false
	case store.KeepBreaker:
	}
	u.SetThrottle(q, func(g *memory.Throttle) {
		if until := u.Now.Later(change.Cooldown); change.Cooldown > 0 && until > g.Until {
			g.Until, g.Cause = until, change.Cause
		}
		if g.Open = open; change.Breaker == store.OpenBreaker {
			g.Until = max(g.Until, u.Now.Mono-u.Now.Sub) // its memory begins now
		}
	})
}
