package txn

import (
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/throttle"
)

// SetThrottle replaces a queue's throttle by a copy that do has changed.
func (tx *Tx) SetThrottle(q *memory.Queue, do func(*throttle.Throttle)) {
	tx.Touch(q)
	g := throttle.None
	if q.Throttle != nil {
		g = *q.Throttle
	}
	do(&g)
	q.Throttle = &g
	if q.ThrottleExpired(tx.Now) && len(g.Starts) == 0 {
		q.Throttle = nil
	}
}

// PruneThrottle drops the expired parts of a queue's throttle before a claim: else an expired breaker would be open again with
// the first running job.
func (tx *Tx) PruneThrottle(q *memory.Queue) {
	g := q.Throttle
	if g == nil {
		return
	}
	open, starts := q.BreakerOpen(tx.Now), g.Starts
	if rate := q.Limits().Rate; rate.Limited() {
		starts = starts.Counting(rate, tx.Now)
	}
	if open != g.Open || len(starts) != len(g.Starts) {
		tx.SetThrottle(q, func(g *throttle.Throttle) { g.Open, g.Starts = open, starts })
	}
}

// ApplyLaneChange sets the cooldown and the breaker that a settlement asks for.
func (tx *Tx) ApplyLaneChange(q *memory.Queue, change store.LaneChange) {
	if change.Cooldown == 0 && change.Breaker == store.KeepBreaker {
		return
	}
	if q.Blocked(tx.Now) && q.Waiting > 0 {
		tx.Notify(q) // unless it still is when all is done
	}
	open := q.BreakerOpen(tx.Now)
	switch change.Breaker {
	case store.OpenBreaker:
		open = true
	case store.CloseBreaker:
		open = false
	case store.KeepBreaker:
	}
	tx.SetThrottle(q, func(g *throttle.Throttle) {
		if change.Cooldown > 0 {
			g.Until = max(g.Until, tx.Now.Later(change.Cooldown))
		}
		if g.Open = open; change.Breaker == store.OpenBreaker {
			g.Until = max(g.Until, tx.Now.Mono-tx.Now.Sub) // its memory begins now
		}
	})
}
