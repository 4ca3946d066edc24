package sched

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
