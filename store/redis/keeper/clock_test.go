package keeper

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClockStep_IsNoneWhatCallsAndSlewingTake(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		name         string
		now          int64 // 5 s after a reading of 105 s
		began, ended time.Duration
		by, from     int64
	}{
		{"none", 110_000, 5000 * ms, 5001 * ms, 0, 0},
		{"a slow call", 114_000, 5000 * ms, 9000 * ms, 0, 0},
		{"a slow answer", 110_000, 5000 * ms, 9000 * ms, 0, 0},
		{"slewed", 110_900, 5000 * ms, 5001 * ms, 0, 0},
		{"slewed back", 109_100, 5000 * ms, 5001 * ms, 0, 0},
		{"ahead", 116_100, 5000 * ms, 5001 * ms, 6_102, 110_003},
		{"back", 105_000, 5000 * ms, 5001 * ms, -4_998, 99_997},
	} {
		var w stepDetector
		require.Zero(t, w.detect(clockReading{now: 105_000, began: 0, ended: 1 * ms}, 0, true))
		got := w.detect(clockReading{now: c.now, began: c.began, ended: c.ended}, 0, true)
		require.Equal(t, clockStep{c.by, c.from}, got, c.name)
	}
	var w stepDetector
	require.Zero(t, w.detect(clockReading{now: 5_000}, 5_400, false), "servers differ a little")
	require.Equal(t, clockStep{by: -2_000}, w.detect(clockReading{now: 5_000}, 7_000, false))
	require.Zero(t, w.detect(clockReading{now: 5_000}, 1_000, false), "no carrier has stored a reading for a while")
}
