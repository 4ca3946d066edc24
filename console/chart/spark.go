package chart

import (
	"fmt"
	"html/template"
	"math"

	"github.com/ringback/ringback/console/words"
)

// Size of a sparkline and of the margin that its strokes need.
const (
	sparkWidth, sparkHeight = 120, 24
	sparkMargin             = 3
	sparkColumns            = 60
)

// Spark returns a sparkline of values at equal intervals, the oldest first. NaN and infinite values are gaps. More than
// 60 values are drawn as averages. The scale begins at 0, or at the lowest value if that is negative.
func Spark(values []float64, label string) template.HTML {
	lowest, highest, last := math.NaN(), math.NaN(), math.NaN()
	at := func(i int) float64 {
		if !isNumber(values[i]) {
			return math.NaN()
		}
		return min(max(values[i], -maxRate), maxRate)
	}
	for i := range values {
		v := at(i)
		if math.IsNaN(v) {
			continue
		}
		if !(v >= lowest) {
			lowest = v
		}
		if !(v <= highest) {
			highest = v
		}
		last = v
	}
	if math.IsNaN(last) {
		return phrase(title(label, "no values yet"))
	}
	d := newDrawing("spark", sparkWidth, sparkHeight, title(label, fmt.Sprintf("%s at last, between %s and %s",
		words.Decimal(last), words.Decimal(lowest), words.Decimal(highest))))

	columns := reduce(len(values), sparkColumns, mean, at)
	floor, top := min(lowest, 0), max(highest, 0)
	if top == floor {
		top = floor + 1
	}
	line := polyline{step: (sparkWidth - 2*sparkMargin) / float64(max(len(columns)-1, 1)), left: sparkMargin}
	data := line.data(columns, func(v float64) float64 {
		return sparkHeight - sparkMargin - (v-floor)/(top-floor)*(sparkHeight-2*sparkMargin)
	})
	d.path("c-line", data)
	d.dots("c-now", 4, fmt.Sprintf("M%s %sh0", number(line.lastX), number(line.lastY)))
	return d.html()
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
