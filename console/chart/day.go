package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"time"

	"github.com/ringback/ringback/console/words"
)

const (
	// WideDay and NarrowDay are widths of a strip: that of the page, and that of a column of a list.
	WideDay   = 720
	NarrowDay = 320

	dayHeight         = 40
	dayMargin         = 8
	dayTop, dayBottom = 6, 22
	dense             = 3   // ticks nearer than this are one bar
	hourWidth         = 6.8 // half of that of the label of an hour
)

// Day returns a strip of the 24 hours from a time on, with the ticks of a schedule in them in order, the hours of a
// location and a mark for now, which is among them. Ticks of at most six minutes' distance are a solid bar, in a narrow
// strip also those that are farther from each other. all: the schedule has no more ticks than these; else they are
// those that make its bars, the first, the last and the next one after now.
func Day(ticks []time.Time, all bool, from, now time.Time, loc *time.Location, width float64) template.HTML {
	from = from.In(loc)
	shown := dayText(ticks, from, now, loc)
	if !all {
		shown = "at least " + shown
	}
	d := newDrawing("day", width, dayHeight, shown)
	d.add(fmt.Sprintf(`<rect class="c-track" x="%d" y="%d" width="%s" height="%d"/>`, dayMargin, dayTop,
		number(width-2*dayMargin), dayBottom-dayTop))
	x := func(t time.Time) float64 {
		return dayMargin + (width-2*dayMargin)*float64(t.Sub(from))/float64(24*time.Hour)
	}
	d.hours(from, loc, x, width)
	d.ticks(ticks, x)
	d.path("c-mark c-now", fmt.Sprintf("M%s %dV%d", number(x(now)), dayTop-4, dayBottom+4))
	return d.html()
}

// dayText says how many ticks there are, and the first, the last and the next of them.
func dayText(ticks []time.Time, from, now time.Time, loc *time.Location) string {
	text := fmt.Sprintf("%s in the 24 hours from %s, the first at %s", words.Count(int64(len(ticks)), "tick"),
		words.DateTime(from, loc), words.When(ticks[0], from, loc))
	if last := ticks[len(ticks)-1]; len(ticks) > 1 {
		text += ", the last at " + words.When(last, from, loc)
	}
	if i := slices.IndexFunc(ticks, func(t time.Time) bool { return t.After(now) }); i > 0 {
		text += ", the next at " + words.When(ticks[i], from, loc)
	}
	return text
}

// hours draws lines and labels for every third hour of the day in a location.
func (d *drawing) hours(from time.Time, loc *time.Location, x func(time.Time) float64, width float64) {
	var lines drawing
	var labels []string
	year, month, day := from.Date()
	for hour := 0; hour <= 48; hour += 3 {
		at := time.Date(year, month, day, hour, 0, 0, 0, loc)
		center := x(at)
		// a day may have no such hour
		if center < hourWidth || center > width-hourWidth || at.Hour() != hour%24 || at.Before(from) {
			continue
		}
		lines.add("M", number(center), " ", number(dayTop), "V", number(dayBottom+3))
		labels = append(labels, text(center, dayHeight-4, fmt.Sprintf("%02d", hour%24)))
	}
	d.path("c-grid", lines.b.String())
	d.group("middle", labels...)
}

// ticks draws single ticks as lines, and dense ones as bars.
func (d *drawing) ticks(ticks []time.Time, x func(time.Time) float64) {
	var lines, bars drawing
	const height = dayBottom - dayTop
	for i := 0; i < len(ticks); {
		first := math.Round(x(ticks[i]))
		last := first
		for i++; i < len(ticks); i++ {
			next := math.Round(x(ticks[i]))
			if next-last > dense {
				break
			}
			last = next
		}
		if last == first {
			lines.add("M", number(first), " ", number(dayTop), "v", number(height))
			continue
		}
		bars.add("M", number(first), " ", number(dayTop), "h", number(last-first), "v",
			number(height), "H", number(first), "z")
	}
	d.path("c-line", lines.b.String())
	d.path("c-bar", bars.b.String())
}
