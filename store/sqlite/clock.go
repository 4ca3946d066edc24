package sqlite

import (
	"math"
	"time"
)

// An instant is one reading of both clocks: the wall's, by which jobs are due and records are dated, and the monotonic
// one, by which leases and wake-ups run, so that a jump of the wall clock ends no lease early.
type instant struct {
	ms   int64 // Unix milliseconds
	mono int64 // nanoseconds since Open
	sub  int64 // nanoseconds of the wall clock beyond ms
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
		return instant{ms: t.UnixMilli(), mono: int64(t.Sub(start)), sub: int64(t.Nanosecond()) % int64(time.Millisecond)}
	}
}

// after is the wall's moment d from now, in whole milliseconds and never earlier: it is rounded up, and comparing rounds
// down. Without a wait it is now.
func (i instant) after(d time.Duration) int64 {
	if d <= 0 {
		return i.ms
	}
	return i.roundUp(d)
}

// roundUp is the first whole millisecond of the wall that is not before d from now.
func (i instant) roundUp(d time.Duration) int64 {
	ms := int64(d/time.Millisecond) + wholeMillis(d%time.Millisecond+time.Duration(i.sub))
	if i.ms > math.MaxInt64-ms {
		return math.MaxInt64
	}
	return i.ms + ms
}

// later is the monotonic moment at which d has passed by the wall, rounded up to whole milliseconds, so that it is
// not early by a part of one. Cooldowns and rates run on the monotonic clock: no jump of the wall clock shortens them.
func (i instant) later(d time.Duration) int64 {
	return i.monoOf(i.roundUp(max(0, d)))
}

// farthest bounds moments, in nanoseconds: 73 years from Open, so that adding a window's length does not overflow.
const farthest = math.MaxInt64 / 4

// monoOf is the monotonic moment at which the wall clock shows so many milliseconds, if it is not set until then.
func (i instant) monoOf(ms int64) int64 {
	const most = farthest / int64(time.Millisecond)
	return i.mono - i.sub + min(max(ms-i.ms, -most), most)*int64(time.Millisecond)
}

// wallOf is what the wall clock will show at a monotonic moment, in milliseconds rounded up.
func (i instant) wallOf(mono int64) int64 {
	ahead := mono - i.mono + i.sub
	ms := ahead / int64(time.Millisecond)
	if ahead%int64(time.Millisecond) > 0 {
		ms++
	}
	return i.ms + ms
}

// wholeMillis is a wait in milliseconds, rounded up.
func wholeMillis(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// date turns stored milliseconds into a time; zero is the zero time.
func date(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// millis is the stored form of a time; the zero time is zero.
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
