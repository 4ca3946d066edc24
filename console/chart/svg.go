package chart

import (
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ringback/ringback/console/words"
)

// Limits of texts, in characters.
const (
	maxLabel = 48
	maxName  = 16
)

// Font metrics in units of the viewBox: the font size, and the widths of characters in a wide sans-serif font.
const (
	fontSize   = 11
	wideChar   = 11.5
	narrowChar = 6.8
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
	d.add(`<title>`, html.EscapeString(title), `</title>`)
	return d
}

// add writes parts that are escaped already.
func (d *drawing) add(parts ...string) {
	for _, part := range parts {
		d.b.WriteString(part)
	}
}

// room reports whether so many more bytes fit before the end.
func (d *drawing) room(bytes int) bool { return d.b.Len()+bytes+len("</svg>") <= MaxBytes }

// path adds a path of a class, unless it is empty.
func (d *drawing) path(class, data string) {
	if data != "" {
		d.add(`<path class="`, class, `" d="`, data, `"/>`)
	}
}

// rect adds a rectangle.
func (d *drawing) rect(class string, x, y, width, height float64) {
	d.add(`<rect class="`, class, `" x="`, number(x), `" y="`, number(y), `" width="`, number(width),
		`" height="`, number(height), `"/>`)
}

// dots adds round dots of a class at the centres: subpaths without length, whose caps are drawn.
func (d *drawing) dots(class string, size float64, centres string) {
	if centres != "" {
		d.add(`<path class="c-dots `, class, `" stroke-width="`, number(size),
			`" stroke-linecap="round" d="`, centres, `"/>`)
	}
}

// group begins a group of texts with an anchor: start, middle or end.
func (d *drawing) group(class, anchor string) {
	d.add(`<g class="`, class, `" text-anchor="`, anchor, `">`)
}

func (d *drawing) endGroup() { d.add(`</g>`) }

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
	return template.HTML(`<p class="c-empty">` + html.EscapeString(sentence) + `</p>`) //nolint:gosec // escaped
}

// number returns a coordinate with at most one decimal place.
func number(v float64) string {
	text := strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	if text == "-0" {
		return "0"
	}
	return text
}

// cut returns at most so many characters of a text. What XML or the eye would not take as characters is replaced:
// control characters, changes of the writing direction, invalid bytes.
func cut(text string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n == most-1 && utf8.RuneCountInString(text) > most {
			b.WriteRune('…')
			break
		}
		if !unicode.IsPrint(r) {
			r = utf8.RuneError
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// widthOf estimates the width of a text.
func widthOf(text string) (width float64) {
	for _, r := range text {
		if r < 0x250 && !strings.ContainsRune("+%@mwMW", r) { // Latin letters, digits and marks
			width += narrowChar
		} else {
			width += wideChar
		}
	}
	return width
}

// cutToWidth returns as much of a text as fits into a width.
func cutToWidth(text string, width float64) string {
	if widthOf(text) <= width {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && widthOf(string(runes))+wideChar > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// known returns a class of Colors: class itself, else c-muted.
func known(class string) string {
	if slices.Contains(Colors, class) {
		return class
	}
	return "c-muted"
}

// title returns the title of a picture: its label, and what it shows.
func title(label, shown string) string {
	if label = strings.TrimSpace(cut(label, maxLabel)); label != "" {
		label += ": "
	}
	return words.Sentence(label + shown)
}

// joinWithin joins parts with semicolons while they fit into so many escaped bytes, and counts those that do not.
func joinWithin(parts []string, bytes int) string {
	var b strings.Builder
	for i, part := range parts {
		if bytes -= len(html.EscapeString(part)) + 2; bytes < 0 {
			b.WriteString("; and " + words.Number(int64(len(parts)-i)) + " more")
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(part)
	}
	return strings.TrimPrefix(b.String(), "; and ")
}

// A span is a part of a row or column that a label occupies.
type span struct{ from, to float64 }

// spans are the occupied parts of a row or column.
type spans []span

// take occupies a part, if it is free with a margin on both sides.
func (s *spans) take(from, to, margin float64) bool {
	for _, taken := range *s {
		if from < taken.to+margin && taken.from < to+margin {
			return false
		}
	}
	*s = append(*s, span{from, to})
	return true
}

// isNumber reports whether v is neither infinite nor NaN.
func isNumber(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
