package clock

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
		now := Instant{Millis: 0, Sub: int64(c.sub)}
		require.Equal(t, c.ms, now.After(c.wait), "%+v", c)
	}
	require.Equal(t, int64(math.MaxInt64), Instant{Millis: math.MaxInt64 - 5, Sub: 1}.After(time.Hour))
}

func TestBits_ForgetsWhatIsOldAndStaysBounded(t *testing.T) {
	b := bits{first: 100}
	for _, n := range []int64{99, 100, 163, 164, 1000} {
		b.put(n, true)
	}
	require.Equal(t, []bool{false, true, true, true, true, false},
		[]bool{b.has(99), b.has(100), b.has(163), b.has(164), b.has(1000), b.has(5000)})
	require.Equal(t, []int64{0, 100, 100, 163, 164, 164, 1000, 1000}, []int64{
		b.last(99), b.last(100), b.last(162),
		b.last(163), b.last(164), b.last(999), b.last(1000), b.last(5000),
	})
	b.put(163, false)
	b.put(7000, false)
	require.False(t, b.has(163))
	b.forget(170)
	require.False(t, b.has(100))
	require.True(t, b.has(1000))
	b.put(delayedBits+1000, true)
	require.True(t, b.has(delayedBits+1000))
	require.LessOrEqual(t, len(b.words), delayedBits/64)
	b.put(100*delayedBits, true)
	require.True(t, b.has(100*delayedBits))
	require.False(t, b.has(1000))
	require.LessOrEqual(t, len(b.words), delayedBits/64)
}
