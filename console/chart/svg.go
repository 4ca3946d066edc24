package chart

import (
	"html"
	"html/template"
	"strconv"
	"strings"

	"github.com/ringback/ringback/console/words"
)

// The font size and the distance of lines, in units of the viewBox.
const (
	fontSize   = 11
	lineHeight = 13
)

// A drawing is an svg that is being written.
type drawing struct{ b strings.Builder }

// newDrawing begins an svg of a kind, with its size and its title in plain text.
func newDrawing(kind string, width, height float64, title string) *drawing {
	d := &drawing{}
	w, h := number(width), number(height)
	d.add(`<svg class="c-chart c-`, kind, `" role="img" viewBox="0 0 `, w, ` `, h, `" width="`, w, `" height="`, h,
		`" font-size="`, strconv.Itoa(fontSize), `">`)
	d.add(`<title>`, html.EscapeString(words.Sentence(title)), `</title>`)
	return d
}

// add writes parts that are escaped already.
func (d *drawing) add(parts ...string) {
	for _, part := range parts {
		d.b.WriteString(part)
	}
}

// path adds a path of a class, unless it is empty.
func (d *drawing) path(class, data string) {
	if data != "" {
		d.add(`<path class="`, class, `" d="`, data, `"/>`)
	}
}

// group adds labels with an anchor: start, middle or end.
func (d *drawing) group(anchor string, labels ...string) {
	d.add(`<g class="c-label" text-anchor="`, anchor, `">`)
	d.add(labels...)
	d.add(`</g>`)
}

// text returns a text element.
func text(x, y float64, content string) string {
	return `<text x="` + number(x) + `" y="` + number(y) + `">` + html.EscapeString(content) + `</text>`
}

// html returns the whole svg.
func (d *drawing) html() template.HTML {
	d.add(`</svg>`)
	return template.HTML(d.b.String()) //nolint:gosec // every text went through html.EscapeString
}

// paragraph returns a sentence in place of a picture.
func paragraph(sentence string) template.HTML {
	//nolint:gosec // escaped
	return template.HTML(`<p class="c-empty">` + html.EscapeString(words.Sentence(sentence)) + `</p>`)
}

// number returns a coordinate with at most one decimal place.
func number(v float64) string {
	text := strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	if text == "-0" {
		return "0"
	}
	return text
}
