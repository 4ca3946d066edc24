package sqlite

import (
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/throttle"
)

// setThrottle replaces a queue's throttle by a copy that do has changed.
func (tx *tx) setThrottle(q *memory.Queue, do func(*throttle.Throttle)) {
	tx.touch(q)
	g := throttle.None
	if q.Throttle != nil {
		g = *q.Throttle
	}
	do(&g)
	q.Throttle = &g
	if q.ThrottleExpired(tx.now) && len(g.Starts) == 0 {
		q.Throttle = nil
	}
}

// pruneThrottle drops the expired parts of a queue's throttle before a claim: else an expired breaker would be open again with
// the first running job.
func (tx *tx) pruneThrottle(q *memory.Queue) {
	g := q.Throttle
	if g == nil {
		return
	}
	open, starts := q.BreakerOpen(tx.now), g.Starts
	if rate := q.Limits().Rate; rate.Limited() {
		starts = starts.Counting(rate, tx.now)
	}
	if open != g.Open || len(starts) != len(g.Starts) {
		tx.setThrottle(q, func(g *throttle.Throttle) { g.Open, g.Starts = open, starts })
	}
}

// applyLaneChange sets the cooldown and the breaker that a settlement asks for.
func (tx *tx) applyLaneChange(q *memory.Queue, change store.LaneChange) {
	if change.Cooldown == 0 && change.Breaker == store.KeepBreaker {
		return
	}
	if q.Blocked(tx.now) && q.Waiting > 0 {
		tx.notify(q) // unless it still is when all is done
	}
	open := q.BreakerOpen(tx.now)
	switch change.Breaker {
	case store.OpenBreaker:
		open = true
	case store.CloseBreaker:
		open = false
	case store.KeepBreaker:
	}
	tx.setThrottle(q, func(g *throttle.Throttle) {
		if change.Cooldown > 0 {
			g.Until = max(g.Until, tx.now.Later(change.Cooldown))
		}
		if g.Open = open; change.Breaker == store.OpenBreaker {
			g.Until = max(g.Until, tx.now.Mono-tx.now.Sub) // its memory begins now
		}
	})
}
