package sqlite

import (
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/throttle"
)

// limits are what the policies of a queue's topic and lane say.
func (q *queue) limits() *policy.Limits {
	if q.laneConfig != nil {
		return &q.laneConfig.limits
	}
	return q.topic.limits
}

// room is how many more jobs of the queue may be claimed now, if the caller may hold ahead jobs beyond the lane's concurrency.
func (q *queue) room(now clock.Instant, ahead int64) int64 {
	limits := q.limits()
	if limits.Paused || q.damaged {
		return 0
	}
	room := max(0, int64(limits.Concurrency)+ahead-q.running)
	if q.throttle == nil {
		if limits.Rate.Limited() {
			room = min(room, int64(limits.Rate.Starts))
		}
		return room
	}
	if q.throttle.Until > now.Mono {
		return 0
	}
	if q.open(now) {
		room = min(room, max(0, 1-q.running))
	}
	return min(room, q.throttle.Starts.Room(limits.Rate, now))
}

func (q *queue) blocked(now clock.Instant) bool { return q.room(now, 0) == 0 }

// free is from when on time alone keeps nothing of the queue back, monotonic; not ever when something else does.
func (q *queue) free(now clock.Instant) (at int64, ever bool) {
	limits := q.limits()
	if limits.Paused || q.damaged || q.running >= int64(limits.Concurrency) {
		return clock.Past, false
	}
	if q.throttle == nil {
		return clock.Past, true
	}
	return max(q.throttle.Until, q.throttle.Starts.Free(limits.Rate, now)), !q.open(now) || q.running == 0
}

// open reports whether the lane's breaker is open, or waits for its probe. It is forgotten store.BreakerRetention after its cooldown, unless
// a job is running.
func (q *queue) open(now clock.Instant) bool {
	g := q.throttle
	return g != nil && g.Open && (q.running > 0 || now.Mono <= g.Until+int64(store.BreakerRetention))
}

// throttleExpired reports whether nothing of a queue's throttle applies any more.
func (q *queue) throttleExpired(now clock.Instant) bool {
	rate := q.limits().Rate
	return q.throttle.Until <= now.Mono && !q.open(now) && (!rate.Limited() || len(q.throttle.Starts.Counting(rate, now)) == 0)
}

// setThrottle replaces a queue's throttle by a copy that do has changed.
func (tx *tx) setThrottle(q *queue, do func(*throttle.Throttle)) {
	tx.touch(q)
	g := throttle.None
	if q.throttle != nil {
		g = *q.throttle
	}
	do(&g)
	q.throttle = &g
	if q.throttleExpired(tx.now) && len(g.Starts) == 0 {
		q.throttle = nil
	}
}

// pruneThrottle drops the expired parts of a queue's throttle before a claim: else an expired breaker would be open again with
// the first running job.
func (tx *tx) pruneThrottle(q *queue) {
	g := q.throttle
	if g == nil {
		return
	}
	open, starts := q.open(tx.now), g.Starts
	if rate := q.limits().Rate; rate.Limited() {
		starts = starts.Counting(rate, tx.now)
	}
	if open != g.Open || len(starts) != len(g.Starts) {
		tx.setThrottle(q, func(g *throttle.Throttle) { g.Open, g.Starts = open, starts })
	}
}

// applyLaneChange sets the cooldown and the breaker that a settlement asks for.
func (tx *tx) applyLaneChange(q *queue, change store.LaneChange) {
	if change.Cooldown == 0 && change.Breaker == store.KeepBreaker {
		return
	}
	if q.blocked(tx.now) && q.waiting > 0 {
		tx.notify(q) // unless it still is when all is done
	}
	open := q.open(tx.now)
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

// cooldownUntil is the end of a queue's cooldown by the wall clock; zero when there is none.
func (q *queue) cooldownUntil(now clock.Instant) time.Time {
	if q.throttle == nil || q.throttle.Until <= now.Mono {
		return time.Time{}
	}
	return clock.Time(now.WallAt(q.throttle.Until))
}
