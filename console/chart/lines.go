package chart

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/console/words"
)

const (
	linesWidth   = 680
	linesColumns = 80
	namesWidth   = 56 // of the names at the ends of the lines
	day          = 24 * time.Hour
)

// steps are the values that a logarithmic axis of durations can have.
var steps = []time.Duration{
	time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute,
	10 * time.Minute, time.Hour, 6 * time.Hour, day, 10 * day, 100 * day, 1000 * day, 10_000 * day, 100_000 * day,
}

// Lines returns durations on a logarithmic axis, such as the p50 and p99 of the lateness: the values are seconds, over
// the time from from to to, which is written in the location of from. Of more than 80 values a column is the largest,
// so that no peak is lost. Values below 1ms are drawn as 1ms. Without a value it returns a sentence.
func Lines(series []Series, from, to time.Time, label string) template.HTML {
	columns := make([][]float64, len(series))
	least, most := math.Inf(1), math.NaN()
	var said []string
	for i, s := range series {
		columns[i] = reduce(s.Values, linesColumns, largest)
		highest := largest(columns[i])
		if math.IsNaN(highest) {
			continue
		}
		for _, v := range columns[i] {
			if v < least {
				least = v
			}
		}
		most = largest([]float64{most, highest})
		said = append(said, fmt.Sprintf("%s %s at last, at most %s", s.Name, words.Duration(seconds(lastOf(s.Values))),
			words.Duration(seconds(highest))))
	}
	if len(said) == 0 {
		return paragraph(label + ": no values from " + period(from, to))
	}
	d := newDrawing("lines", linesWidth, pictureHeight, label+": "+strings.Join(said, "; ")+"; "+period(from, to))
	axis := newLogAxis(least, most)
	right := float64(linesWidth - 8 - namesWidth)
	d.durationAxis(axis, right)
	d.timeAxis(right, from, to)
	var names []lineName
	for i, s := range series {
		line := polyline{left: plotLeft, step: (right - plotLeft) / float64(max(len(columns[i])-1, 1))}
		data := line.data(columns[i], axis.y)
		if data == "" {
			continue
		}
		d.add(`<path class="c-line `, s.Class, `" stroke-linecap="round" d="`, data, `"/>`)
		names = append(names, lineName{y: line.lastY + 4, name: s.Name})
	}
	d.lineNames(names, right+6)
	return d.html()
}

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

// A logAxis is a vertical logarithmic axis of durations.
type logAxis struct{ first, last int } // in steps

// newLogAxis returns the shortest axis that has two values in seconds, of one step at least.
func newLogAxis(least, most float64) logAxis {
	a := logAxis{last: 1}
	for a.first+2 < len(steps) && steps[a.first+1].Seconds() <= least {
		a.first++
	}
	a.last = a.first + 1
	for a.last+1 < len(steps) && steps[a.last].Seconds() < most {
		a.last++
	}
	return a
}

// y returns the height of a value in seconds. Values beyond the axis are at its ends.
func (a logAxis) y(v float64) float64 {
	low, high := steps[a.first].Seconds(), steps[a.last].Seconds()
	return plotBottom - plotHeight*math.Log(min(max(v, low), high)/low)/math.Log(high/low)
}

// durationAxis draws lines and durations of an axis where there is room, from below.
func (d *drawing) durationAxis(a logAxis, right float64) {
	var grid drawing
	var labels []string
	last := math.Inf(1)
	for i := a.first; i <= a.last; i++ {
		y := math.Round(a.y(steps[i].Seconds()))
		if last-y < lineHeight+2 {
			continue
		}
		last = y
		if i > a.first {
			grid.add("M", number(plotLeft), " ", number(y), "H", number(right))
		}
		labels = append(labels, text(labelRight, min(y+4, plotBottom), words.Duration(steps[i])))
	}
	d.path("c-grid", grid.b.String())
	d.group("end", labels...)
}

// A lineName is the name at the end of a line.
type lineName struct {
	y    float64
	name string
}

// lineNames writes the names beside each other's ends, moved apart where they would overlap.
func (d *drawing) lineNames(names []lineName, x float64) {
	slices.SortStableFunc(names, func(a, b lineName) int { return cmp.Compare(a.y, b.y) })
	lowest := float64(plotBottom)
	for i := len(names) - 1; i >= 0; i-- { // from below, so that none leaves the plot there
		names[i].y = min(names[i].y, lowest)
		lowest = names[i].y - lineHeight
	}
	highest := float64(plotTop)
	var labels []string
	for _, n := range names {
		y := max(n.y, highest)
		highest = y + lineHeight
		labels = append(labels, text(x, y, n.name))
	}
	d.group("start", labels...)
}

// polyline writes values at equal distances as the data of a path.
type polyline struct {
	left, step   float64
	lastX, lastY float64 // of the last value
}

// data returns the data of a path through the values. It is interrupted at NaN, and a value between two gaps is a dot.
func (p *polyline) data(values []float64, y func(v float64) float64) string {
	var d drawing
	drawn := false
	for i, v := range values {
		if math.IsNaN(v) {
			drawn = false
			continue
		}
		// Rounded before the difference is taken, so that relative steps do not add up errors.
		x, y := math.Round(10*(p.left+float64(i)*p.step))/10, math.Round(10*y(v))/10
		switch isolated := i+1 == len(values) || math.IsNaN(values[i+1]); {
		case drawn:
			d.add("l", number(x-p.lastX), " ", number(y-p.lastY))
		case isolated:
			d.add("M", number(x), " ", number(y), "h0")
		default:
			d.add("M", number(x), " ", number(y))
		}
		drawn, p.lastX, p.lastY = true, x, y
	}
	return d.b.String()
}
