package chart

import (
	"math"
	"slices"
	"time"
)

// Series are values at equal intervals over the time of a picture, the oldest first, and as many as those of the other
// series. They are not negative. NaN is a gap.
type Series struct {
	Name   string
	Class  string // such as c-delivered or c-p99
	Values []float64
}

// mean returns the mean of some values. Gaps are left out; of gaps alone it is NaN.
func mean(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	return sum / float64(n) // 0/0 is NaN
}

// largest returns the largest of some values. Gaps are left out; of gaps alone it is NaN.
func largest(values []float64) float64 {
	most := math.NaN()
	for _, v := range values {
		if !math.IsNaN(v) && !(v <= most) {
			most = v
		}
	}
	return most
}

// reduce returns values as at most so many: one for several, by mean or largest.
func reduce(values []float64, most int, by func([]float64) float64) []float64 {
	columns := make([]float64, min(len(values), most))
	for c := range columns {
		columns[c] = by(values[c*len(values)/len(columns) : (c+1)*len(values)/len(columns)])
	}
	return columns
}

// lastOf returns the last number of some values; NaN: there is none.
func lastOf(values []float64) float64 {
	for _, v := range slices.Backward(values) {
		if !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// clockLayout returns how the times of an axis are written.
func clockLayout(span time.Duration) string {
	switch {
	case span > day:
		return "01-02 15:04"
	case span > 30*time.Minute:
		return "15:04"
	}
	return "15:04:05"
}

// period returns the beginning and end of a picture in words.
func period(from, to time.Time) string {
	layout := clockLayout(to.Sub(from))
	return from.Format(layout) + " to " + to.Format(layout)
}

// The frame of the pictures with two axes.
const (
	plotLeft, plotTop     = 62, 10
	plotHeight            = 120
	plotBottom            = plotTop + plotHeight
	pictureHeight         = plotBottom + 20
	labelRight, timesBase = plotLeft - 6, plotBottom + lineHeight + 1
)

// timeAxis draws the horizontal axis up to its right side, with times at its ends and in its middle.
func (d *drawing) timeAxis(right float64, from, to time.Time) {
	d.path("c-axis", "M"+number(plotLeft)+" "+number(plotBottom)+"H"+number(right))
	layout := clockLayout(to.Sub(from))
	d.group("start", text(plotLeft, timesBase, from.Format(layout)))
	d.group("end", text(right, timesBase, to.Format(layout)))
	d.group("middle", text((plotLeft+right)/2, timesBase, from.Add(to.Sub(from)/2).Format(layout)))
}
