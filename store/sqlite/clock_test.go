package sqlite

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

func TestInstant_AfterIsNeverEarly(t *testing.T) {
	for _, c := range []struct {
		sub, wait time.Duration
		ms        int64
	}{
		{0, 0, 0},
		{999_999, 0, 0},
		{999_999, -time.Hour, 0},
		{0, time.Millisecond, 1},
		{1, time.Millisecond, 2},
		{999_999, time.Millisecond, 2},
		{999_999, 1, 1},
		{999_999, 2, 2},
		{500_000, 10*time.Millisecond + 400_000, 11},
		{500_000, 10*time.Millisecond + 600_000, 12},
		{1, math.MaxInt64, math.MaxInt64/int64(time.Millisecond) + 1},
	} {
		now := instant{ms: 0, sub: int64(c.sub)}
		require.Equal(t, c.ms, now.after(c.wait), "%+v", c)
	}
	require.Equal(t, int64(math.MaxInt64), instant{ms: math.MaxInt64 - 5, sub: 1}.after(time.Hour))
}

// steadyClock is a clock with parts of a millisecond.
type steadyClock struct{ now time.Time }

func TestClaim_IsNotEarlyByAPartOfAMillisecond(t *testing.T) {
	c := &steadyClock{now: time.Date(2026, 3, 1, 12, 0, 0, 900_000, time.UTC)}
	o := options(t)
	o.Now = func() time.Time { return c.now }
	s := opened(t, o)
	insert(t, s, entry("a", 10*time.Millisecond))
	due := c.now.Add(10 * time.Millisecond)

	c.now = due.Add(-time.Nanosecond)
	require.Empty(t, claimUp(t, s, 1))
	wait := carry(t, s).Next
	require.Positive(t, wait)
	c.now = c.now.Add(wait)
	require.Less(t, c.now.Sub(due), time.Millisecond)
	carried, err := s.Carry(t.Context(), 0, store.NewToken(), store.Round{})
	require.NoError(t, err)
	require.Equal(t, 1, carried.Moved, "the carrier's wait is neither short nor long by a part of a millisecond")
	require.Len(t, claimUp(t, s, 1), 1)
}
