// Package chart draws the pictures of the console as SVG for html/template.
//
// Each function returns a complete element: an svg, or a paragraph with a sentence when there is nothing to draw. All
// of them are pure, deterministic and safe for concurrent use. Their arguments come from the console's own code: names
// and labels are short and without markup, and a picture has at most four or five series, so that it stays below 4 KiB.
//
// The pictures need neither scripts nor inline styles, so they work under a strict Content-Security-Policy. Colours
// come from a stylesheet by classes; geometry and font sizes are attributes. An svg has the role img and a title that
// says its numbers.
//
// Classes are of two kinds. Those of series and of c-now say what something is, and the others how it is drawn: the
// stylesheet gives each of the former a colour, with which c-area, c-bar and texts are filled, and c-line and c-mark
// are stroked. The areas of Stack cover each other, so their colours are opaque.
//
// Labels never overlap.
package chart
