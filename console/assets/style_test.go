package assets

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pair is a colour on a background, as names of custom properties.
type pair struct{ colour, background string }

// textPairs are the colours of text: a contrast of at least 4.5 is needed at any size.
var textPairs = []pair{
	{"text", "bg"},
	{"text", "surface"},
	{"text", "sunken"},
	{"text", "quiet-bg"},
	{"muted", "bg"},
	{"muted", "surface"},
	{"muted", "quiet-bg"},
	{"accent", "bg"},
	{"accent", "surface"},
	{"accent", "quiet-bg"},
	{"on-accent", "accent"},
	{"on-danger", "danger"},
	{"ok", "ok-bg"},
	{"warn", "warn-bg"},
	{"bad", "bad-bg"},
	{"info", "info-bg"},
	{"bad", "bg"},
	{"bad", "surface"},
}

// shapePairs are the colours of charts, focus rings and the borders of controls: a contrast of at least 3 is needed.
var shapePairs = []pair{
	{"control", "bg"},
	{"control", "surface"},
	{"accent", "bg"},
	{"accent", "surface"},
	{"accent", "quiet-bg"},
	{"delivered", "surface"},
	{"again", "surface"},
	{"dead", "surface"},
	{"released", "surface"},
	{"delivered", "bg"},
	{"again", "bg"},
	{"dead", "bg"},
	{"released", "bg"},
}

var (
	property = regexp.MustCompile(`--([a-z-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\);`)
	usage    = regexp.MustCompile(`var\(--([a-z-]+)\)`)
)

// luminance returns the relative luminance of a colour in hexadecimal, as WCAG 2.2 defines it.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		value, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		require.NoError(t, err)
		c := float64(value) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestStylesheet_HasContrastAA(t *testing.T) {
	require.InDelta(t, 21, contrast(t, "000000", "ffffff"), 0.001)
	require.InDelta(t, 4.54, contrast(t, "767676", "ffffff"), 0.01)

	css := string(files["style.css"].plain)
	light, dark := make(map[string]string), make(map[string]string)
	for _, match := range property.FindAllStringSubmatch(css, -1) {
		light[match[1]], dark[match[1]] = match[2], match[3]
	}
	for theme, colours := range map[string]map[string]string{"light": light, "dark": dark} {
		check := func(pairs []pair, least float64) {
			for _, p := range pairs {
				require.Contains(t, colours, p.colour)
				require.Contains(t, colours, p.background)
				ratio := contrast(t, colours[p.colour], colours[p.background])
				require.GreaterOrEqual(t, ratio, least, "%s on %s, %s: %.2f", p.colour, p.background, theme, ratio)
			}
		}
		check(textPairs, 4.5)
		check(shapePairs, 3)
	}

	// Every colour of text in a rule is in the table above.
	for _, match := range regexp.MustCompile(`[ {;]color: var\(--([a-z-]+)\)`).FindAllStringSubmatch(css, -1) {
		checked := slices.ContainsFunc(textPairs, func(p pair) bool { return p.colour == match[1] })
		require.True(t, checked, "%s is the colour of text, and is not checked", match[1])
	}
}

func TestStylesheet_DefinesWhatItUses(t *testing.T) {
	css := string(files["style.css"].plain)
	for _, match := range usage.FindAllStringSubmatch(css, -1) {
		require.Contains(t, css, "--"+match[1]+": ")
	}
	require.Equal(t, strings.Count(css, "{"), strings.Count(css, "}"))
	// A colour outside the custom properties has no dark value.
	_, rules, found := strings.Cut(css, "/* Text */")
	require.True(t, found)
	require.Empty(t, regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b[^{]*;`).FindAllString(rules, -1))
}

func TestStylesheet_HasNoMotionUnlessAllowed(t *testing.T) {
	before, _, found := strings.Cut(string(files["style.css"].plain), "@media (prefers-reduced-motion: no-preference)")
	require.True(t, found)
	require.NotRegexp(t, `transition|animation`, before)
}
