package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedian_IsTheMiddle(t *testing.T) {
	require.InDelta(t, 2.0, median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 0)
	require.InDelta(t, 7.0, median([]float64{7}), 0)

	values := []float64{3, 1, 2}
	median(values)
	require.Equal(t, []float64{3, 1, 2}, values, "they stay in the order of the rounds")
}

func TestSummary_HasMedianAndRange(t *testing.T) {
	require.Nil(t, summarize(nil))
	require.Equal(t, &summary{Median: 2, Low: 1, High: 9, Runs: 3}, summarize([]float64{9, 1, 2}))
}

func TestRatios_AreOfRunsOfTheSameRound(t *testing.T) {
	require.Equal(t, []float64{0.5, 2}, ratios([]float64{1, 4}, []float64{2, 2}))
	require.Equal(t, []float64{0.5}, ratios([]float64{1, 4}, []float64{2}), "the other was left out after a round")
	require.Empty(t, ratios([]float64{1, -1}, []float64{0, 2}), "what is not above zero has none")
}

func TestQuantile_IsTheNearestRank(t *testing.T) {
	sorted := []float64{1, 2, 3, 4}
	for q, want := range map[float64]float64{0: 1, 0.25: 1, 0.26: 2, 0.5: 2, 0.99: 4, 1: 4} {
		require.InDelta(t, want, quantile(sorted, q), 0, "%v", q)
	}
}
