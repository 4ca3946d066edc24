// Package chart draws the pictures of the console as SVG for html/template.
//
// Each function returns a complete element: an svg, or a paragraph with a sentence when there is nothing to draw. All
// of them are pure, deterministic and safe for concurrent use. A result has at most MaxBytes bytes, whatever the
// arguments are; what does not fit is left out of the picture, and a text says how much that is. Every text is escaped,
// long ones are cut.
//
// The pictures need neither scripts nor inline styles, so they work under a strict Content-Security-Policy. Colours
// come from a stylesheet by classes; geometry and font sizes are attributes. An svg has the role img and a title that
// says its numbers.
//
// Classes are of two kinds. Those of Colors say what something is, and those of Shapes how it is drawn: the stylesheet
// gives each of Colors a colour, with which c-area, c-bar and texts are filled, and c-line, c-dots and c-mark are
// stroked. The areas of Stack cover each other, so their colours are opaque. The widths of c-dots are attributes, which
// a stroke-width of the stylesheet would override.
//
// Labels never overlap. Their widths are estimates for a sans-serif font, because the font is the reader's.
package chart

// MaxBytes bounds the size of a picture.
const MaxBytes = 4096

// Colors are the classes of what is shown, in order of name. A series or a moment of another class is drawn as c-muted.
var Colors = []string{
	"c-again", "c-cancelled", "c-dead", "c-delivered", "c-expiry", "c-lost", "c-muted", "c-next",
	"c-now", "c-p50", "c-p99", "c-registered", "c-released",
}

// Shapes are the other classes that pictures use, in order of name.
var Shapes = []string{
	"c-area", "c-axis", "c-bar", "c-chart", "c-day", "c-dots", "c-empty", "c-future", "c-gap", "c-grid",
	"c-label", "c-ladder", "c-line", "c-lines", "c-mark", "c-stack", "c-text", "c-timeline", "c-track",
}
