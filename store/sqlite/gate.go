package sqlite

import (
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// A gate is what keeps a whole lane back for a while: its hold, its breaker, and the starts that its rate counts. Most
// lanes have none. Like a window it is never changed, only replaced.
type gate struct {
	until  int64 // of the hold, monotonic; beforeAll: there was none
	open   bool  // the breaker
	starts window
}

// noGate is what a queue without one begins with.
var noGate = gate{until: beforeAll}

// limits are what the policies of a queue's topic and lane say.
func (q *queue) limits() *policy.Limits {
	if q.own != nil {
		return &q.own.limits
	}
	return &q.topic.limits
}

// room is how many more jobs of the queue may be held now.
func (q *queue) room(now instant) int64 {
	limits := q.limits()
	if limits.Paused || q.damaged {
		return 0
	}
	room := max(0, int64(limits.Concurrency)-q.running)
	if q.gate == nil {
		if limits.Rate.Limited() {
			room = min(room, int64(limits.Rate.Starts))
		}
		return room
	}
	if q.gate.until > now.mono {
		return 0
	}
	if q.open(now) {
		room = min(room, max(0, 1-q.running))
	}
	return min(room, q.gate.starts.room(limits.Rate, now))
}

func (q *queue) blocked(now instant) bool { return q.room(now) == 0 }

// free is from when on time alone keeps nothing of the queue back, monotonic; not ever when something else does.
func (q *queue) free(now instant) (at int64, ever bool) {
	limits := q.limits()
	if limits.Paused || q.damaged || q.running >= int64(limits.Concurrency) {
		return beforeAll, false
	}
	if q.gate == nil {
		return beforeAll, true
	}
	return max(q.gate.until, q.gate.starts.free(limits.Rate, now)), !q.open(now) || q.running == 0
}

// open reports whether the lane's breaker is open, or waits for its probe. It is forgotten a while after its hold, unless
// a job is out.
func (q *queue) open(now instant) bool {
	g := q.gate
	return g != nil && g.open && (q.running > 0 || now.mono <= g.until+int64(store.BreakerRetention))
}

// over reports whether nothing of a queue's gate matters any more.
func (q *queue) over(now instant) bool {
	rate := q.limits().Rate
	return q.gate.until <= now.mono && !q.open(now) && (!rate.Limited() || len(q.gate.starts.counting(rate, now)) == 0)
}

// adjust replaces a queue's gate by what do makes of a copy.
func (tx *tx) adjust(q *queue, do func(*gate)) {
	tx.touch(q)
	g := noGate
	if q.gate != nil {
		g = *q.gate
	}
	do(&g)
	q.gate = &g
	if q.over(tx.now) && len(g.starts) == 0 {
		q.gate = nil
	}
}

// tidy forgets what a claim need not know of a queue's gate any more: else a breaker whose memory has ended would be
// open again with the first job that is out.
func (tx *tx) tidy(q *queue) {
	g := q.gate
	if g == nil {
		return
	}
	open, starts := q.open(tx.now), g.starts
	if rate := q.limits().Rate; rate.Limited() {
		starts = starts.counting(rate, tx.now)
	}
	if open != g.open || len(starts) != len(g.starts) {
		tx.adjust(q, func(g *gate) { g.open, g.starts = open, starts })
	}
}

// unstart gives the start back that a held job's claim took of its lane's rate, unless that counts no more.
func (tx *tx) unstart(h *held) {
	q := h.queue
	rate := q.limits().Rate
	if !h.rated || !rate.Limited() || q.gate == nil || (starts{latest: h.latest}).leave(rate) <= tx.now.mono {
		return
	}
	if q.blocked(tx.now) && q.waiting > 0 {
		tx.ring(q) // unless it still is when all is done
	}
	tx.adjust(q, func(g *gate) { g.starts = g.starts.counting(rate, tx.now).giveBack(h.claimed, 1) })
}

// turn makes what an attempt showed of its lane's receiver take hold.
func (tx *tx) turn(q *queue, change store.LaneChange) {
	if change.Cooldown == 0 && change.Breaker == store.KeepBreaker {
		return
	}
	if q.blocked(tx.now) && q.waiting > 0 {
		tx.ring(q) // unless it still is when all is done
	}
	open := q.open(tx.now)
	switch change.Breaker {
	case store.OpenBreaker:
		open = true
	case store.CloseBreaker:
		open = false
	case store.KeepBreaker:
	}
	tx.adjust(q, func(g *gate) {
		if change.Cooldown > 0 {
			g.until = max(g.until, tx.now.later(change.Cooldown))
		}
		if g.open = open; change.Breaker == store.OpenBreaker {
			g.until = max(g.until, tx.now.mono-tx.now.sub) // its memory begins now
		}
	})
}

// heldUntil is the end of a queue's hold by the wall clock; zero when none holds.
func (q *queue) heldUntil(now instant) time.Time {
	if q.gate == nil || q.gate.until <= now.mono {
		return time.Time{}
	}
	return date(now.wallOf(q.gate.until))
}
