package clock

import (
	"math"
	"time"
)

// An Instant is one reading of both clocks.
type Instant struct {
	Millis int64 // of the wall clock, in Unix milliseconds
	Mono   int64 // of the monotonic clock, in nanoseconds since New
	Sub    int64 // nanoseconds of the wall clock beyond ms
}

// A Reader reads both clocks.
type Reader func() Instant

// New returns a reader of now, whose monotonic reading it uses if there is one; nil: time.Now.
func New(now func() time.Time) Reader {
	if now == nil {
		now = time.Now
	}
	start := now()
	return func() Instant {
		t := now()
		return Instant{
			Millis: t.UnixMilli(), Mono: int64(t.Sub(start)),
			Sub: int64(t.Nanosecond()) % int64(time.Millisecond),
		}
	}
}

// After returns what the wall clock shows d from now, in milliseconds rounded up. Without a wait it is now.
func (i Instant) After(d time.Duration) int64 {
	if d <= 0 {
		return i.Millis
	}
	return i.roundUp(d)
}

// roundUp returns the first millisecond of the wall clock that is not before d from now.
func (i Instant) roundUp(d time.Duration) int64 {
	ms := int64(d/time.Millisecond) + CeilMillis(d%time.Millisecond+time.Duration(i.Sub))
	if i.Millis > math.MaxInt64-ms {
		return math.MaxInt64
	}
	return i.Millis + ms
}

// Later returns the monotonic time at which d has passed, rounded up to a whole millisecond of the wall clock.
func (i Instant) Later(d time.Duration) int64 {
	return i.MonoAt(i.roundUp(max(0, d)))
}

// Past is a monotonic time before all others.
const Past = math.MinInt64 / 2

// farthest bounds monotonic times, in nanoseconds: 73 years, so that adding the length of a window does not overflow.
const farthest = math.MaxInt64 / 4

// MonoAt returns the monotonic time at which the wall clock shows ms, unless it is set until then.
func (i Instant) MonoAt(ms int64) int64 {
	const most = farthest / int64(time.Millisecond)
	return i.Mono - i.Sub + min(max(ms-i.Millis, -most), most)*int64(time.Millisecond)
}

// WallAt returns what the wall clock shows at a monotonic time, in milliseconds rounded up.
func (i Instant) WallAt(mono int64) int64 {
	ahead := mono - i.Mono + i.Sub
	ms := ahead / int64(time.Millisecond)
	if ahead%int64(time.Millisecond) > 0 {
		ms++
	}
	return i.Millis + ms
}

// TimeAt returns what the wall clock shows at a monotonic time that is still to come; zero if it is not.
func (i Instant) TimeAt(mono int64) time.Time {
	if mono <= i.Mono {
		return time.Time{}
	}
	return Time(i.WallAt(mono))
}

// Due returns the due time of a job with a delay, or of one that runs at a time, in Unix milliseconds: not before now,
// and rounded up.
func (i Instant) Due(delay time.Duration, runAt time.Time) int64 {
	if runAt.IsZero() {
		return i.After(delay)
	}
	return max(MillisUp(runAt), i.Millis)
}

// Expiry returns the expiry of a job in Unix milliseconds; 0: it has none.
func (i Instant) Expiry(in time.Duration, at time.Time) int64 {
	switch {
	case !at.IsZero():
		return at.UnixMilli()
	case in > 0:
		return i.After(in)
	default:
		return 0
	}
}

// CeilMillis returns a duration in milliseconds, rounded up.
func CeilMillis(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// Time returns the time of Unix milliseconds; 0 is the zero time.
func Time(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Millis returns a time in Unix milliseconds; the zero time is 0.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// MillisUp is Millis rounded up.
func MillisUp(t time.Time) int64 {
	ms := Millis(t)
	if !t.IsZero() && t.Nanosecond()%int(time.Millisecond) > 0 {
		ms++
	}
	return ms
}
