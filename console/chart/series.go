package chart

import (
	"math"
	"slices"
	"time"
)

// Series are values at equal intervals over the time of a picture, the oldest first. NaN is a gap; infinite and
// negative values are gaps, too.
type Series struct {
	Name   string
	Class  string // of Colors
	Values []float64
}

// at returns the value of an interval, at most the largest that is drawn; NaN: there is none.
func (s *Series) at(i int, largest float64) float64 {
	if i >= len(s.Values) || !isNumber(s.Values[i]) || s.Values[i] < 0 {
		return math.NaN()
	}
	return min(s.Values[i], largest)
}

// intervals returns the number of intervals of the longest series.
func intervals(series []Series) (n int) {
	for i := range series {
		n = max(n, len(series[i].Values))
	}
	return n
}

// A reduction is one value for several: mean or largest. Gaps are left out; of gaps alone it is NaN.
type reduction func(at func(i int) float64, from, to int) float64

func mean(at func(i int) float64, from, to int) float64 {
	sum, n := 0.0, 0
	for i := from; i < to; i++ {
		if v := at(i); !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	return sum / float64(n) // 0/0 is NaN
}

func largest(at func(i int) float64, from, to int) float64 {
	most := math.NaN()
	for i := from; i < to; i++ {
		if v := at(i); !math.IsNaN(v) && !(v <= most) {
			most = v
		}
	}
	return most
}

// reduce returns n values as at most so many.
func reduce(n, most int, by reduction, at func(i int) float64) []float64 {
	columns := make([]float64, min(n, most))
	for c := range columns {
		columns[c] = by(at, c*n/len(columns), (c+1)*n/len(columns))
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

// maxOf returns the largest number of some values; NaN: there is none.
func maxOf(values []float64) float64 {
	return largest(func(i int) float64 { return values[i] }, 0, len(values))
}

// clockLayout returns how the times of an axis are written.
func clockLayout(span time.Duration) string {
	switch {
	case span > 24*time.Hour:
		return "2 Jan 15:04"
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

// timeAxis draws the horizontal axis between two sides, with times at its ends and, where there is room, in its middle.
func (d *drawing) timeAxis(left, right float64, from, to time.Time) {
	d.path("c-axis", "M"+number(left)+" "+number(plotBottom)+"H"+number(right))
	layout := clockLayout(to.Sub(from))
	first, last := from.Format(layout), to.Format(layout)
	d.add(`<g class="c-label">`, text(left, timesBase, first), `</g>`)
	d.group("c-label", "end")
	d.add(text(right, timesBase, last))
	d.endGroup()
	d.group("c-label", "middle")
	d.add(text((left+right)/2, timesBase, from.Add(to.Sub(from)/2).Format(layout)))
	d.endGroup()
}
