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
	dayWidth, dayHeight = 720, 40
	dayMargin           = 8
	dayTop, dayBottom   = 6, 22
	dense               = 3 // ticks nearer than this are one bar
)

// DayOptions configure a strip of a day; the zero value: a wide one of all ticks.
type DayOptions struct {
	// Label begins the title.
	Label string
	// AtLeast: the schedule has more ticks than these, which are those that make its bars, the first, the last and the
	// next one after now.
	AtLeast bool
	// Width is that of the strip, at least 100. Zero: 720. The narrower it is, the farther ticks of a bar are from each
	// other.
	Width float64
}

// Day returns a strip of the 24 hours from a time on, with the ticks of a schedule, the hours of a location and a mark
// for now. Ticks of at most six minutes' distance are a solid bar. A zero now has no mark, a nil location is UTC.
// Without a tick in these hours it returns a sentence.
func Day(ticks []time.Time, from, now time.Time, loc *time.Location, o DayOptions) template.HTML {
	width := o.Width
	if !(width >= 100 && width <= dayWidth) {
		width = dayWidth
	}
	if loc == nil {
		loc = time.UTC
	}
	from = from.In(loc)
	to := from.Add(24 * time.Hour)
	ticks = slices.DeleteFunc(slices.Clone(ticks), func(t time.Time) bool { return t.Before(from) || !t.Before(to) })
	if len(ticks) == 0 {
		return paragraph(title(o.Label, "no tick in the 24 hours from "+words.DateTime(from, loc)))
	}
	slices.SortFunc(ticks, time.Time.Compare)
	shown := dayText(ticks, from, now, loc)
	if o.AtLeast {
		shown = "at least " + shown
	}
	d := newDrawing("day", width, dayHeight, title(o.Label, shown))
	d.rect("c-track", dayMargin, dayTop, width-2*dayMargin, dayBottom-dayTop)
	x := func(t time.Time) float64 {
		return dayMargin + (width-2*dayMargin)*float64(t.Sub(from))/float64(24*time.Hour)
	}
	d.hours(from, to, loc, x, width)
	d.ticks(ticks, x)
	if !now.Before(from) && !now.After(to) {
		d.path("c-mark c-now", fmt.Sprintf("M%s %dV%d", number(x(now)), dayTop-4, dayBottom+4))
	}
	return d.html()
}

// dayText says how many ticks there are, and the first, the last and the next of them.
func dayText(ticks []time.Time, from, now time.Time, loc *time.Location) string {
	text := fmt.Sprintf("%s in the 24 hours from %s, the first at %s", words.Count(int64(len(ticks)), "tick"),
		words.DateTime(from, loc), words.When(ticks[0], from, loc))
	if last := ticks[len(ticks)-1]; len(ticks) > 1 {
		text += ", the last at " + words.When(last, from, loc)
	}
	if i := slices.IndexFunc(ticks, func(t time.Time) bool { return t.After(now) }); i > 0 && !now.Before(from) {
		text += ", the next at " + words.When(ticks[i], from, loc)
	}
	return text
}

// hours draws lines and labels for every third hour of the day in a location.
func (d *drawing) hours(from, to time.Time, loc *time.Location, x func(time.Time) float64, width float64) {
	var lines, labels drawing
	var taken spans
	year, month, day := from.Date()
	for hour := 0; hour <= 48; hour += 3 {
		at := time.Date(year, month, day, hour, 0, 0, 0, loc)
		if at.Before(from) || at.After(to) || at.Hour() != hour%24 { // a day may have no such hour
			continue
		}
		name := fmt.Sprintf("%02d", hour%24)
		center, half := x(at), widthOf(name)/2
		if center-half < 0 || center+half > width || !taken.take(center-half, center+half, 4) {
			continue
		}
		lines.add("M", number(center), " ", number(dayTop), "V", number(dayBottom+3))
		labels.add(text(center, dayHeight-4, name))
	}
	d.path("c-grid", lines.b.String())
	d.group("c-label", "middle")
	d.add(labels.b.String())
	d.endGroup()
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
