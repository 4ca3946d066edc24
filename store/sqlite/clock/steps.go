package clock

import "time"

const (
	// stepAtLeast is by how much the wall clock must move against the monotonic clock to have been set, in
	// milliseconds.
	stepAtLeast = 500
	// MaxSteps is how many steps are followed. Older jobs are not moved.
	MaxSteps = 16
	// SpanSize is how many numbers a span has: of many of them the jobs may have ended.
	SpanSize = 512
)

// Steps follows the wall clock being set. Due times follow the wall clock; leases, wake-ups, cooldowns and rates follow
// the monotonic one. Jobs that were registered with a delay by this process, and wait for their first attempt, are
// moved back with the clock, so that they need not wait for the difference. When it is set ahead again they are moved
// ahead as far, so that none is early. Jobs for a fixed time and retries are not moved.
//
// Each transaction has one reading of the clock, so the jobs between two steps are a range of numbers.
type Steps struct {
	// Pending is the sum of the steps since its last reset to 0 by the caller, in milliseconds.
	Pending int64
	// Ahead is the sum of the steps ahead that the processes of this database have seen, in milliseconds.
	Ahead   int64
	offset  int64 // of the wall clock against the monotonic clock, in milliseconds
	eras    []era
	walks   []walk
	delayed bits
}

// An era is the time between two steps: the last number that was given in it, and its offset.
type era struct{ last, offset int64 }

// A walk moves jobs after a step: those up to a number, from one offset to another.
type walk struct{ cursor, from, to int64 }

// NewSteps returns steps of a clock that shows now. first is the first number that will be given, and ahead the sum of
// the steps ahead that earlier processes have seen.
func NewSteps(now Instant, first, ahead int64) Steps {
	return Steps{Ahead: ahead, offset: offsetOf(now), delayed: bits{first: first}}
}

// Stored returns an instant by whose wall clock throttles are stored: without the steps ahead, which would end them.
func (c *Steps) Stored(now Instant) Instant {
	now.Millis -= c.Ahead
	return now
}

func offsetOf(now Instant) int64 {
	return now.Millis - (now.Mono-now.Sub)/int64(time.Millisecond)
}

// Observe notes a step, if the clock was set. last is the number that was given last.
func (c *Steps) Observe(now Instant, last int64) {
	offset := offsetOf(now)
	if d := offset - c.offset; d > -stepAtLeast && d < stepAtLeast {
		return
	}
	c.Pending += offset - c.offset
	c.Ahead += max(0, offset-c.offset)
	c.eras = append(c.eras, era{last, c.offset})
	c.walks = append(c.walks, walk{last, c.offset, offset})
	if len(c.eras) > MaxSteps {
		c.delayed.forget(c.eras[0].last)
		c.eras = c.eras[1:]
	}
	c.walks = c.walks[max(0, len(c.walks)-MaxSteps):] // a dropped one was for jobs that are forgotten
	c.offset = offset
}

// SetDelayed notes whether the job with a number waits for its first attempt after a delay.
func (c *Steps) SetDelayed(n int64, delayed bool) { c.delayed.put(n, delayed) }

// Span returns the next numbers whose jobs may have to be moved: above after, up to last. ok is false if there are
// none.
func (c *Steps) Span() (after, last int64, ok bool) {
	if len(c.walks) == 0 {
		return 0, 0, false
	}
	last = c.delayed.last(c.walks[0].cursor)
	return last - SpanSize, last, true
}

// Shift returns by how many milliseconds a job of Span is to be moved: back while the clock shows less than when the
// job was registered, and as far ahead again when it does not.
func (c *Steps) Shift(n int64) int64 {
	if !c.delayed.has(n) {
		return 0
	}
	registered, w := c.offset, c.walks[0]
	for i := len(c.eras) - 1; i >= 0 && n <= c.eras[i].last; i-- {
		registered = c.eras[i].offset
	}
	return min(0, w.to-registered) - min(0, w.from-registered)
}

// Advance moves past Span. It returns a function that undoes that, and whether there are more spans.
func (c *Steps) Advance() (undo func(), more bool) {
	before := append([]walk(nil), c.walks...)
	after, _, _ := c.Span()
	if c.walks[0].cursor = after; c.delayed.last(after) == 0 {
		c.walks = c.walks[1:]
	}
	return func() { c.walks = before }, len(c.walks) > 0
}
