package sqlite

import (
	"math"
	"time"
)

// An instant is one reading of both clocks: the wall's, by which jobs are due and records are dated, and the monotonic
// one, by which leases and rings run, so that a jump of the wall clock ends no lease early.
type instant struct {
	ms   int64 // Unix milliseconds
	mono int64 // nanoseconds since Open
}

// clock reads both. They come from one reading of Options.Now: Time.Sub takes the monotonic part where there is one.
type clock func() instant

func newClock(now func() time.Time) clock {
	if now == nil {
		now = time.Now
	}
	start := now()
	return func() instant {
		t := now()
		return instant{ms: t.UnixMilli(), mono: int64(t.Sub(start))}
	}
}

// after is the wall's moment d from now, in whole milliseconds and never earlier.
func (i instant) after(d time.Duration) int64 {
	if d <= 0 {
		return i.ms
	}
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	if i.ms > math.MaxInt64-ms {
		return math.MaxInt64
	}
	return i.ms + ms
}

// date turns stored milliseconds into a time; zero stands for none.
func date(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// millis is what is stored of a time; the zero time is zero.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// millisUp is the first whole millisecond that is not before t; the zero time is zero.
func millisUp(t time.Time) int64 {
	ms := millis(t)
	if !t.IsZero() && t.Nanosecond()%int(time.Millisecond) > 0 {
		ms++
	}
	return ms
}
