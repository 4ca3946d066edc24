package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/console/words"
)

const (
	stackWidth   = 680
	stackColumns = 60
)

// Stack returns rates on top of each other, the first series lowest: values are per second, over the time from from to
// to, which is written in the location of from. More than 60 values are drawn as averages; then the title has averages,
// too. Without a value above 0 it returns a sentence.
func Stack(series []Series, from, to time.Time, label string) template.HTML {
	levels, gaps := stackUp(series)
	highest := largest(levels[len(levels)-1])
	switch {
	case math.IsNaN(highest):
		return paragraph(label + ": no values from " + period(from, to))
	case highest <= 0:
		return paragraph(label + ": nothing from " + period(from, to))
	}
	top := roundUp(highest)
	d := newDrawing("stack", stackWidth, pictureHeight,
		label+": "+stackText(series, highest, len(gaps), to.Sub(from))+"; "+period(from, to))

	right := float64(stackWidth - 8 - namesWidth) // as in Lines, so that both have the same axis of time
	d.path("c-grid", fmt.Sprintf("M%d %dH%s", plotLeft, plotTop, number(right))+fmt.Sprintf("M%d %dH%s", plotLeft,
		plotTop+plotHeight/2, number(right)))
	y := func(v float64) float64 { return math.Round(plotBottom - v/top*plotHeight) }
	x := func(column int) float64 {
		return math.Round(plotLeft + (right-plotLeft)*float64(column)/float64(len(gaps)))
	}
	// The highest level first: each covers a part of those before it, so that an area needs its upper side only.
	for i, s := range slices.Backward(series) {
		d.path("c-area "+s.Class, area(levels[i], x, y))
	}
	d.path("c-gap", underline(gaps, x))
	d.timeAxis(right, from, to)
	d.group("end", text(labelRight, plotTop+4, compact(top)+"/s"),
		text(labelRight, plotTop+plotHeight/2+4, compact(top/2)+"/s"), text(labelRight, plotBottom, "0"))
	return d.html()
}

// Spark returns rates on top of each other in the height of a line of text, without axes. title says what they are.
func Spark(series []Series, title string) template.HTML {
	const width, height = 120, 20
	levels, gaps := stackUp(series)
	top := largest(levels[len(levels)-1])
	d := newDrawing("spark", width, height, title)
	x := func(column int) float64 { return math.Round(width * float64(column) / float64(len(gaps))) }
	y := func(v float64) float64 { return math.Round(height - v/max(top, 1e-9)*(height-1)) }
	for i, s := range slices.Backward(series) {
		d.path("c-area "+s.Class, area(levels[i], x, y))
	}
	d.path("c-axis", fmt.Sprintf("M0 %dH%d", height, width))
	return d.html()
}

// stackUp returns the upper sides of the areas in columns, and which columns have no value at all. In those the sides
// are NaN.
func stackUp(series []Series) (levels [][]float64, gaps []bool) {
	below := make([]float64, min(len(series[0].Values), stackColumns))
	gaps = make([]bool, len(below))
	for c := range gaps {
		gaps[c] = true
	}
	for _, s := range series {
		level := reduce(s.Values, stackColumns, mean)
		for c, v := range level {
			if !math.IsNaN(v) {
				gaps[c] = false
				below[c] += v
			}
			level[c] = below[c]
		}
		levels = append(levels, level)
	}
	for c, gap := range gaps {
		for s := range levels {
			if gap {
				levels[s][c] = math.NaN()
			}
		}
	}
	return levels, gaps
}

// stackText says what the series have at last and on average.
func stackText(series []Series, highest float64, columns int, span time.Duration) string {
	var parts []string
	for _, s := range series {
		if last := lastOf(s.Values); !math.IsNaN(last) {
			parts = append(parts, fmt.Sprintf("%s %s at last, %s on average", s.Name, words.Rate(last),
				words.Rate(mean(s.Values))))
		}
	}
	text := strings.Join(parts, "; ") + "; at most " + words.Rate(highest) + " in all"
	if len(series[0].Values) > columns {
		text += " (averages of " + words.Duration(span/time.Duration(columns)) + ")"
	}
	return text
}

// area returns the path of an area from the axis up to its level, in steps.
func area(level []float64, x func(column int) float64, y func(v float64) float64) string {
	var d drawing
	d.add("M", number(x(0)), " ", number(y(0)))
	atX, atY := x(0), y(0)
	turn := func(column int, toY float64) {
		if toY == atY {
			return
		}
		if to := x(column); to != atX {
			d.add("h", number(to-atX))
			atX = to
		}
		d.add("v", number(toY-atY))
		atY = toY
	}
	for c, v := range level {
		if math.IsNaN(v) {
			v = 0
		}
		turn(c, y(v))
	}
	turn(len(level), y(0))
	if atX == x(0) {
		return "" // flat
	}
	return d.b.String() + "z"
}

// underline returns the path of lines on the axis under columns.
func underline(columns []bool, x func(column int) float64) string {
	var d drawing
	for c := 0; c < len(columns); c++ {
		first := c
		for c < len(columns) && columns[c] {
			c++
		}
		if c > first {
			d.add("M", number(x(first)), " ", number(plotBottom), "H", number(x(c)))
		}
	}
	return d.b.String()
}

// roundUp returns the end of an axis: 1, 2 or 5 times a power of ten, at least 0.1.
func roundUp(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(max(v, 0.1))))
	for _, m := range []float64{1, 2, 5, 10} {
		if v <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// compact returns a number of an axis in few characters: "250", "20k", "5M".
func compact(v float64) string {
	for _, unit := range []struct {
		from, size float64
		name       string
	}{{1e12, 1e12, "T"}, {1e9, 1e9, "G"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}} {
		if v >= unit.from {
			return words.Decimal(v/unit.size) + unit.name
		}
	}
	return words.Decimal(v)
}
