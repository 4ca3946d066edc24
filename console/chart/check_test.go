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

// picture is what a test reads of a result.
type picture struct {
	title string   // of an svg, or the sentence in its place
	drawn bool     // it is an svg
	texts []string // in order of appearance
}

// read parses a result and checks everything that every result keeps.
func read(t *testing.T, result template.HTML) (p picture) {
	t.Helper()
	require.LessOrEqual(t, len(result), MaxBytes)
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
				require.True(t, slices.Contains(Colors, class) || slices.Contains(Shapes, class), class)
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
				width := widthOf(said)
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

// hostile is a label that must not be taken as markup, with characters that XML does not have.
const hostile = "\"><script>alert(1)</script>'&\x00\u202e\xff\ufffe"

func TestHostileLabels_AreText(t *testing.T) {
	series := []Series{{Name: hostile, Class: hostile, Values: []float64{1, 2}}}
	for name, result := range map[string]template.HTML{
		"stack":         Stack(series, noon, noon.Add(minute), hostile),
		"stack, none":   Stack(nil, noon, noon.Add(minute), hostile),
		"lines":         Lines(series, noon, noon.Add(minute), hostile),
		"lines, none":   Lines(nil, noon, noon.Add(minute), hostile),
		"timeline":      Timeline([]Moment{{At: noon, Label: hostile, Class: hostile}}, noon),
		"day":           Day(everyHour(noon), noon, noon, nil, DayOptions{Label: hostile}),
		"day, no ticks": Day(nil, noon, noon, nil, DayOptions{Label: hostile}),
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, read(t, result).title, "\"><script>", "it is shown as text")
			require.NotContains(t, string(result), "<script")
			require.NotContains(t, string(result), "\u202e")
			require.NotContains(t, string(result), "\x00")
		})
	}
}

func TestClasses_AreInOrderAndUsed(t *testing.T) {
	all := ""
	for _, c := range gallery(t) {
		all += string(c.picture)
	}
	for _, classes := range [][]string{Colors, Shapes} {
		require.True(t, slices.IsSorted(classes))
		require.Len(t, slices.Compact(slices.Clone(classes)), len(classes))
	}
	for _, class := range Shapes {
		require.Regexp(t, `class="([^"]* )?`+class+`[" ]`, all)
	}
}

func TestClasses_AreInTheStylesheet(t *testing.T) {
	css, err := os.ReadFile("../assets/style.css")
	require.NoError(t, err)
	// The kinds of pictures look alike, and labels as other texts do.
	plain := []string{"c-day", "c-label", "c-ladder", "c-lines", "c-stack", "c-timeline"}
	for _, class := range slices.Concat(Colors, Shapes) {
		if !slices.Contains(plain, class) {
			require.Regexp(t, `\.`+class+`[ ,]`, string(css))
		}
	}
}
