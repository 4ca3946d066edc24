package main

import (
	"math"
	"slices"
)

// A summary is the median and the range of runs.
type summary struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Runs   int     `json:"runs"`
}

// summarize summarizes values; nil: there are no values.
func summarize(values []float64) *summary {
	if len(values) == 0 {
		return nil
	}
	return &summary{Median: median(values), Low: slices.Min(values), High: slices.Max(values), Runs: len(values)}
}

// median returns the middle value, or the mean of the middle two. It does not change values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// ratios divides run by run, so that other load of the machine in a round counts for both. Values must be above zero.
func ratios(over, under []float64) []float64 {
	var all []float64
	for i, v := range over {
		if i < len(under) && v > 0 && under[i] > 0 {
			all = append(all, v/under[i])
		}
	}
	return all
}

// quantile returns the value that a share q (0 to 1) of sorted values does not exceed (nearest rank).
func quantile(sorted []float64, q float64) float64 {
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}
