package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistory_RecentIsBoundedOnBothSides(t *testing.T) {
	now := time.Date(2030, 1, 31, 12, 0, 20, 0, time.UTC)
	var h History
	for _, ago := range []time.Duration{-25 * time.Hour, -time.Minute, 0, 59 * time.Minute, 60 * time.Minute} {
		at := now.Add(-ago).Truncate(time.Minute)
		h.Merge(&History{Minutes: []HistoryBucket{{At: at, HistoryCounts: HistoryCounts{Dead: 1}}}})
	}
	recent := h.Recent(now)
	require.Len(t, recent.Minutes, 3, "not those of a clock that was ahead by a day, and not the oldest")
	require.Equal(t, now.Add(-59*time.Minute).Truncate(time.Minute), recent.Minutes[0].At)
}

func TestHistory_MergeAddsUpBucketsOfOneTime(t *testing.T) {
	at := time.Unix(0, 0)
	one := History{Hours: []HistoryBucket{{At: at, HistoryCounts: HistoryCounts{Delivered: 1, Late: [9]int64{1}}}}}
	h := one
	h.Merge(&one)
	require.Equal(t, []HistoryBucket{{At: at, HistoryCounts: HistoryCounts{Delivered: 2, Late: [9]int64{2}}}}, h.Hours)
	require.EqualValues(t, 1, one.Hours[0].Delivered)
}

func TestHistoryCounts_EstimateQuantilesWithinABucket(t *testing.T) {
	var c HistoryCounts
	_, ok := c.LateQuantile(0.5)
	require.False(t, ok)
	for late, n := range map[time.Duration]int64{time.Millisecond: 90, 30 * time.Millisecond: 9, time.Hour: 1} {
		c.Late[LateBucket(late)] += n
	}
	for q, within := range map[float64][2]time.Duration{
		0.5:  {time.Millisecond, 5 * time.Millisecond},
		0.95: {20 * time.Millisecond, 100 * time.Millisecond},
		1:    {10 * time.Minute, 10 * time.Minute},
	} {
		got, _ := c.LateQuantile(q)
		require.GreaterOrEqual(t, got, within[0])
		require.LessOrEqual(t, got, within[1])
	}
}
