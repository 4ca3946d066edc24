package recent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/recent"
)

var noon = time.Date(2030, 1, 31, 12, 0, 30, 0, time.UTC)

func minute(ago time.Duration, delivered, failed int64) client.HistoryBucket {
	return client.HistoryBucket{At: noon.Truncate(time.Minute).Add(-ago), Delivered: delivered, Failed: failed}
}

func TestAttempts_SayHowManyWereDelivered(t *testing.T) {
	for want, c := range map[string]struct {
		delivered, failed int64
		most              bool
	}{
		"": {}, "100\u00a0% of 1 attempt": {1, 0, false}, "99\u00a0% of 1,000 attempts": {999, 1, false},
		"10\u00a0% of 10 attempts": {1, 9, true}, "less than 1\u00a0% of 1,000 attempts": {1, 999, true},
		"0\u00a0% of 3 attempts": {0, 3, true},
	} {
		a := recent.LastHour(&client.Buckets{Minutes: []client.HistoryBucket{
			minute(time.Minute, c.delivered, c.failed), minute(time.Hour, 7, 7), // too old
		}}, noon)
		require.Equal(t, want, a.Text())
		require.Equal(t, c.most, a.FailMost(), want)
	}
}

func TestAttempts_AreRatesOfWhatHasPassed(t *testing.T) {
	buckets := client.Buckets{Minutes: []client.HistoryBucket{minute(time.Minute, 60, 0), minute(0, 60, 0)}}
	a := recent.LastHour(&buckets, noon)
	rates := a.Verdicts()[0].Values
	require.Len(t, rates, 60)
	require.Equal(t, []float64{0, 1, 2}, rates[57:], "half of the newest minute has passed")
}

func TestAttempts_KnowTheNewestLateness(t *testing.T) {
	p50, p99 := 2.0, 50.0
	b := minute(2*time.Minute, 1, 0)
	b.LateP50MS, b.LateP99MS = &p50, &p99
	a := recent.LastHour(&client.Buckets{Minutes: []client.HistoryBucket{b, minute(0, 0, 0)}}, noon)
	median, most, ok := a.LastLate(b.At)
	require.True(t, ok)
	require.Equal(t, []time.Duration{2 * time.Millisecond, 50 * time.Millisecond}, []time.Duration{median, most})
	_, _, ok = a.LastLate(b.At.Add(time.Second))
	require.False(t, ok)
}
