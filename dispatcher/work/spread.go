package work

import (
	"time"

	"github.com/ringback/ringback/policy"
)

// spread is a rate with even intervals; zero: no rate.
type spread struct{ starts, per int64 } // per in milliseconds

func spreadOf(r policy.Rate) spread {
	if !r.Limited() {
		return spread{}
	}
	return spread{starts: int64(r.Starts), per: millisUp(r.Per)}
}

func (s spread) limited() bool { return s.starts > 0 }

// at returns the time of the n-th start, from 0. All are rounded up, so that any window of s.per ms has s.starts.
func (s spread) at(n int64) int64 { return ceil(min(n, s.from(maxAhead))*s.per, s.starts) }

// from returns the first start at or after a time.
func (s spread) from(at int64) int64 { return ceil(min(at, maxAhead)*s.starts, s.per) }

// ceil returns a/b, rounded up, for values that are not negative.
func ceil(a, b int64) int64 { return (a + b - 1) / b }

// millisUp returns a duration in milliseconds, rounded up.
func millisUp(d time.Duration) int64 { return ceil(int64(max(d, 0)), int64(time.Millisecond)) }
