package sched

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAllowance_LeavesRoomForLaterTopics(t *testing.T) {
	for weight, want := range map[int]struct{ alone, ofNine, afterNine, afterFifty int }{
		unprovenWeight: {783, 163, 249, 36},
		totalWeight:    {1875, 221, 2, 0},
	} {
		all := 2048
		require.Equal(t, want.alone, allowance(0, all, all, weight))

		used, free := make([]int, 9), all // side by side
		for i := 0; allowance(used[i%9], free, all, weight) > 0; i++ {
			used[i%9]++
			free--
		}
		require.InDelta(t, want.ofNine, used[8], 1)

		free = all // one after another, each as much as it may have
		for k := 1; k <= 50; k++ {
			free -= allowance(0, free, all, weight)
			if k == 9 {
				require.InDelta(t, want.afterNine, free, 1)
			}
		}
		require.InDelta(t, want.afterFifty, free, 1)
	}
}

func TestAllowance_OfOneWorker(t *testing.T) {
	require.Equal(t, 1, allowance(0, 1, 2048, unprovenWeight), "who has none may have the last one")
	require.Equal(t, 0, allowance(1, 1, 2048, unprovenWeight))
	require.Equal(t, 0, allowance(0, 0, 2048, totalWeight))
	require.Equal(t, 0, allowance(5, -3, 2048, totalWeight))
	for all := 1; all <= 11; all++ {
		require.Equal(t, all, allowance(0, all, all, totalWeight), "a small process is nobody's but its topic's")
	}
}

// Attempts that hang keep their descriptors whatever the limit: it must leave room beside them.
func TestLimiter_HalvesAttemptsThatDoNotHang(t *testing.T) {
	l := limiter{max: 2048, current: 2048}
	now := time.Now()
	pause, reduced := l.reduce(500, 480, now)
	require.Equal(t, 490, l.current)
	require.Equal(t, firstPause, pause)
	require.True(t, reduced)
	pause, reduced = l.reduce(500, 480, now.Add(time.Millisecond))
	require.Zero(t, pause, "known")
	require.False(t, reduced)
	require.Equal(t, 490, l.current, "once a second")
	for range 20 {
		now = now.Add(2 * time.Second)
		pause, _ = l.reduce(480, 480, now)
	}
	require.Equal(t, 481, l.current)
	require.Equal(t, maxPause, pause)
}
