package memory

import (
	"math"
	"slices"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
)

// A Window holds the starts that a rate may still count, in the order in which they leave it. It is immutable.
type Window []starts

// Starts of a window leave it together.
type starts struct {
	// from and to are the store's clock at the first and the last of their claims or grants, in Unix milliseconds.
	from, to int64
	n        int64
	// latest is when the last of them may begin, monotonic: they leave the rate's length after it.
	latest int64
}

// mostStarts bounds a window of large rates whose slack is longer than the rate's length; beyond it starts join the
// last ones, and count longer than they need.
const mostStarts = 256

// ExpireAt returns when starts count no more under a rate, monotonic.
func (s starts) ExpireAt(rate policy.Rate) int64 {
	return s.latest + clock.CeilMillis(rate.Per)*int64(time.Millisecond)
}

// Counting returns the part that a rate still counts.
func (w Window) Counting(rate policy.Rate, now clock.Instant) Window {
	for i, s := range w {
		if s.ExpireAt(rate) > now.Mono {
			return w[i:]
		}
	}
	return nil
}

// Room returns how many more starts a rate allows now.
func (w Window) Room(rate policy.Rate, now clock.Instant) int64 {
	if !rate.Limited() {
		return math.MaxInt64
	}
	left := int64(rate.Starts)
	for _, s := range w.Counting(rate, now) {
		left -= s.n
	}
	return max(0, left)
}

// Free returns when a rate allows another start, monotonic; clock.Past if it does now.
func (w Window) Free(rate policy.Rate, now clock.Instant) int64 {
	if !rate.Limited() || len(w) == 0 {
		return clock.Past
	}
	w = w.Counting(rate, now)
	left := int64(rate.Starts)
	for _, s := range w {
		left -= s.n
	}
	for _, s := range w {
		if left > 0 {
			break
		}
		if left += s.n; left > 0 {
			return s.ExpireAt(rate)
		}
	}
	return clock.Past
}

// Add returns a window with n more starts that begin within slack, without those that no longer count. Starts of large
// rates join the last ones while these span at most a 64th of the rate's period.
func (w Window) Add(rate policy.Rate, n int64, slack time.Duration, now clock.Instant) Window {
	s := starts{from: now.Millis, to: now.Millis, n: n, latest: now.Later(slack)}
	kept := w.Counting(rate, now)
	if last := len(kept) - 1; last >= 0 && kept[last].take(s, rate, len(kept)) {
		kept = slices.Clone(kept)
		kept[last].to = max(kept[last].to, s.to)
		kept[last].n += n
		kept[last].latest = max(kept[last].latest, s.latest)
		return kept
	}
	at := len(kept)
	for at > 0 && kept[at-1].latest > s.latest {
		at--
	}
	grown := make(Window, 0, len(kept)+1)
	grown = append(grown, kept[:at]...)
	grown = append(grown, s)
	return append(grown, kept[at:]...)
}

// take says whether newer starts may join some, the last of so many.
func (s starts) take(newer starts, rate policy.Rate, of int) bool {
	if s.from == newer.from && s.to == newer.to && s.latest == newer.latest {
		return true
	}
	if rate.Starts <= store.CountedStarts {
		return false
	}
	span := newer.to - s.from // after a jump of the wall clock it says nothing
	return of >= mostStarts || (newer.from >= s.to && span <= rate.Per.Milliseconds()/store.CountedStarts)
}
