package chart

import (
	"encoding/xml"
	"errors"
	"html/template"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// box is a part of the viewBox.
type box struct{ left, top, right, bottom float64 }

func (b box) contains(o box) bool {
	const rounding = 0.11
	return o.left >= b.left-rounding && o.right <= b.right+rounding && o.top >= b.top-rounding &&
		o.bottom <= b.bottom+rounding
}

func (b box) overlaps(o box) bool {
	const rounding = 0.2
	return b.left < o.right-rounding && o.left < b.right-rounding && b.top < o.bottom-rounding &&
		o.top < b.bottom-rounding
}

// allowed are the elements of pictures with their attributes. There are neither styles nor handlers of events nor
// links.
var allowed = map[string][]string{
	"svg":   {"class", "role", "viewBox", "width", "height", "font-size"},
	"title": {},
	"g":     {"class", "text-anchor"},
	"path":  {"class", "d", "stroke-width", "stroke-linecap"},
	"rect":  {"class", "x", "y", "width", "height"},
	"text":  {"class", "x", "y"},
	"p":     {"class"},
}

// maxBytes bounds the size of a picture.
const maxBytes = 4096

// Classes say what something is, or how it is drawn.
var (
	colors = []string{
		"c-again", "c-cancelled", "c-dead", "c-delivered", "c-now", "c-p50", "c-p99", "c-released",
	}
	shapes = []string{
		"c-area", "c-axis", "c-bar", "c-chart", "c-day", "c-empty", "c-gap", "c-grid", "c-label", "c-line", "c-lines",
		"c-mark", "c-spark", "c-stack", "c-track",
	}
)

// glyph is the width of a character in a wide sans-serif font.
const glyph = 6.8

func isNumber(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// picture is what a test reads of a result.
type picture struct {
	title string   // of an svg, or the sentence in its place
	drawn bool     // it is an svg
	texts []string // in order of appearance
}

// read parses a result and checks everything that every result keeps.
func read(t *testing.T, result template.HTML) (p picture) {
	t.Helper()
	require.LessOrEqual(t, len(result), maxBytes)
	var (
		view    box
		texts   []box
		anchors = []string{"start"}
		open    []string
		place   [2]float64
		content strings.Builder
	)
	decoder := xml.NewDecoder(strings.NewReader(string(result)))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, "%s", result)
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Local
			attributes := make(map[string]string)
			for _, a := range token.Attr {
				require.Contains(t, allowed, name)
				require.Contains(t, allowed[name], a.Name.Local, "%s", name)
				attributes[a.Name.Local] = a.Value
			}
			for class := range strings.FieldsSeq(attributes["class"]) {
				require.True(t, slices.Contains(colors, class) || slices.Contains(shapes, class), class)
			}
			coordinate := func(name string) float64 {
				v, err := strconv.ParseFloat(attributes[name], 64)
				require.NoError(t, err, "%s of %s", name, token.Name.Local)
				require.True(t, isNumber(v), name)
				return v
			}
			content.Reset()
			switch name {
			case "svg":
				require.Empty(t, open)
				require.Equal(t, "img", attributes["role"])
				fields := strings.Fields(attributes["viewBox"])
				require.Len(t, fields, 4)
				require.Equal(t, []string{"0", "0", attributes["width"], attributes["height"]}, fields)
				view = box{0, 0, coordinate("width"), coordinate("height")}
				p.drawn = true
			case "g":
				anchors = append(anchors, attributes["text-anchor"])
			case "rect":
				x, y := coordinate("x"), coordinate("y")
				require.GreaterOrEqual(t, coordinate("width"), 0.0)
				require.True(t, view.contains(box{x, y, x + coordinate("width"), y +
					coordinate("height")}), "%v", token.Attr)
			case "path":
				bounds := boundsOf(t, attributes["d"])
				require.True(t, view.contains(bounds), "%v is outside %v: %v", bounds, view, token.Attr)
			case "text":
				place = [2]float64{coordinate("x"), coordinate("y")}
			}
			open = append(open, name)
		case xml.CharData:
			content.Write(token)
		case xml.EndElement:
			open = open[:len(open)-1]
			switch token.Name.Local {
			case "g":
				anchors = anchors[:len(anchors)-1]
			case "title", "p":
				p.title = content.String()
			case "text":
				said := content.String()
				width := glyph * float64(utf8.RuneCountInString(said))
				left := place[0]
				switch anchors[len(anchors)-1] {
				case "middle":
					left -= width / 2
				case "end":
					left -= width
				}
				// Letters are from 9 above to 2 below their line.
				b := box{left, place[1] - 9, left + width, place[1] + 2}
				require.True(t, view.contains(b), "%q at %v is outside %v", said, b, view)
				for i, other := range texts {
					require.False(t, b.overlaps(other), "%q at %v overlaps %q at %v", said, b, p.texts[i], other)
				}
				texts = append(texts, b)
				p.texts = append(p.texts, said)
			}
		default:
			t.Fatalf("%T", token)
		}
	}
	require.NotEmpty(t, p.title)
	require.NotRegexp(t, `\.\.$`, p.title)
	return p
}

var command = regexp.MustCompile(`([MmLlHhVvz])([^MmLlHhVvz]*)`)

// boundsOf returns the bounds of the data of a path.
func boundsOf(t *testing.T, data string) box {
	t.Helper()
	require.NotEmpty(t, data)
	b := box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	var x, y float64
	covered := 0
	for _, match := range command.FindAllStringSubmatch(data, -1) {
		covered += len(match[0])
		var args []float64
		for field := range strings.FieldsSeq(match[2]) {
			v, err := strconv.ParseFloat(field, 64)
			require.NoError(t, err, data)
			require.True(t, isNumber(v), data)
			args = append(args, v)
		}
		count := map[string]int{"M": 2, "m": 2, "L": 2, "l": 2, "z": 0}
		if n, ok := count[match[1]]; ok {
			require.Len(t, args, n, data)
		} else {
			require.Len(t, args, 1, data)
		}
		switch match[1] {
		case "M", "L":
			x, y = args[0], args[1]
		case "m", "l":
			x, y = x+args[0], y+args[1]
		case "H":
			x = args[0]
		case "h":
			x += args[0]
		case "V":
			y = args[0]
		case "v":
			y += args[0]
		}
		b = box{min(b.left, x), min(b.top, y), max(b.right, x), max(b.bottom, y)}
	}
	require.Equal(t, len(data), covered, data)
	return b
}

func TestClasses_AreUsed(t *testing.T) {
	all := ""
	for _, c := range gallery(t) {
		all += string(c.picture)
	}
	for _, class := range shapes {
		require.Regexp(t, `class="([^"]* )?`+class+`[" ]`, all)
	}
}

func TestClasses_AreInTheStylesheet(t *testing.T) {
	css, err := os.ReadFile("../assets/style.css")
	require.NoError(t, err)
	// The kinds of pictures look alike, and labels as other texts do.
	plain := []string{"c-day", "c-label", "c-lines", "c-spark", "c-stack"}
	for _, class := range slices.Concat(colors, shapes) {
		if !slices.Contains(plain, class) {
			require.Regexp(t, `\.`+class+`[ ,]`, string(css))
		}
	}
}
