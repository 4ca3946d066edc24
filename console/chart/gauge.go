package chart

import (
	"fmt"
	"html/template"

	"github.com/ringback/ringback/console/words"
)

const (
	gaugeBar    = 100
	gaugeHeight = 14
)

// Gauge returns a bar of what is in use of a limit, with both numbers beside it. A bar at its limit has the class
// c-full. With a limit of 0 or less there is none, and it returns a phrase.
func Gauge(value, limit int, label string) template.HTML {
	value = max(value, 0)
	used := words.Number(int64(value))
	if limit <= 0 {
		return phrase(title(label, used+" in use, no limit"))
	}
	all := words.Number(int64(limit))
	shown := used + " of " + all + " in use"
	bar := "c-bar"
	if value >= limit {
		shown += ", at the limit"
		bar = "c-bar c-full"
	}
	numbers := fmt.Sprintf("%s/%s", used, all)
	d := newDrawing("gauge", gaugeBar+8+widthOf(numbers), gaugeHeight, title(label, shown))
	d.rect("c-track", 0, 2, gaugeBar, gaugeHeight-4)
	if value > 0 {
		d.rect(bar, 0, 2, max(1, gaugeBar*min(1, float64(value)/float64(limit))), gaugeHeight-4)
	}
	d.add(`<g class="c-text">`, text(gaugeBar+6, gaugeHeight-3, numbers), `</g>`)
	return d.html()
}
