package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Measures of a plot, in pixels.
const (
	plotWidth, plotHeight               = 720, 400
	marginLeft, marginRight             = 64, 24
	marginTop, marginBottom             = 84, 52
	legendTop, legendStep, legendSwatch = 52, 14, 20
)

// A theme is the colours of a plot.
type theme struct {
	surface, ink, muted, grid, axis string
	lines                           map[string]string // by contestant
}

var themes = map[string]theme{
	"light": {"#fcfcfb", "#0b0b0b", "#6b6a66", "#e4e3dc", "#c3c2b7", map[string]string{
		ours(redisEngine): "#2a78d6", ours(sqliteEngine): "#1baf7a", asynqName: "#eb6834", asynqTunedName: "#eb6834",
		asynqDefaultName: "#eda100", lmstfyName: "#4a3aa7",
	}},
	"dark": {"#1a1a19", "#ffffff", "#a3a29c", "#2c2c2a", "#4a4a46", map[string]string{
		ours(redisEngine): "#3987e5", ours(sqliteEngine): "#199e70", asynqName: "#d95926", asynqTunedName: "#d95926",
		asynqDefaultName: "#c98500", lmstfyName: "#9085e9",
	}},
}

// color returns the color of a contestant. Limits are grey.
func (t theme) color(name string) string {
	if c, ok := t.lines[name]; ok {
		return c
	}
	return t.muted
}

// A chart has lines over two axes. With Log, X is logarithmic from Low on, and lower values are drawn at Low.
type chart struct {
	Title, XLabel, YLabel string
	Log                   bool
	Low, High             float64   // of x
	XTicks                []float64 // marked values
	YHigh                 float64   // of y, from 0
	YTicks                []float64
	YPercent              bool
	Marks                 bool // a point for each reading
	Lines                 []curve
}

func (c chart) x(v float64) float64 {
	v = min(max(v, c.Low), c.High)
	share := (v - c.Low) / (c.High - c.Low)
	if c.Log {
		share = math.Log(v/c.Low) / math.Log(c.High/c.Low)
	}
	return marginLeft + share*(plotWidth-marginLeft-marginRight)
}

func (c chart) y(v float64) float64 {
	return plotHeight - marginBottom - v/c.YHigh*(plotHeight-marginTop-marginBottom)
}

// svg draws the chart as an SVG without references to other files.
func (c chart) svg(t theme) string {
	var s strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	line(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" `+
		`font-size="12" role="img">`,
		plotWidth, plotHeight)
	line(`<title>%s</title>`, html.EscapeString(c.Title))
	line(`<rect width="%d" height="%d" rx="6" fill="%s"/>`, plotWidth, plotHeight, t.surface)
	line(`<text x="16" y="28" font-size="15" font-weight="600" fill="%s">%s</text>`, t.ink, html.EscapeString(c.Title))
	c.legend(t, line)
	c.axes(t, line)
	for _, l := range c.Lines {
		var points []string
		for i := range l.X {
			points = append(points, fmt.Sprintf("%.1f,%.1f", c.x(l.X[i]), c.y(l.Y[i])))
		}
		line(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-linejoin="round"%s/>`,
			strings.Join(points, " "), t.color(l.Name), dashes(l.Name))
		for i := range l.X {
			if c.Marks {
				line(`<circle cx="%.1f" cy="%.1f" r="4" fill="%s" stroke="%s" stroke-width="2"/>`,
					c.x(l.X[i]), c.y(l.Y[i]), t.color(l.Name), t.surface)
			}
		}
	}
	line("</svg>")
	return s.String()
}

// dashes distinguish the peers' lines from Ringback's without their colour.
func dashes(name string) string {
	switch {
	case isOurs(name):
		return ""
	case name == bareName:
		return ` stroke-dasharray="2 4"`
	}
	return ` stroke-dasharray="8 4"`
}

// legend names the lines in a row under the title.
func (c chart) legend(t theme, line func(string, ...any)) {
	x := 16.0
	for _, l := range c.Lines {
		line(`<line x1="%.0f" y1="%d" x2="%.0f" y2="%d" stroke="%s" stroke-width="2"%s/>`,
			x, legendTop-4, x+legendSwatch, legendTop-4, t.color(l.Name), dashes(l.Name))
		line(`<text x="%.0f" y="%d" fill="%s">%s</text>`, x+legendSwatch+6, legendTop, t.ink, html.EscapeString(l.Name))
		x += legendSwatch + 6 + 6.6*float64(len(l.Name)) + legendStep // about as wide as the text is
	}
}

// axes draws the grid, its numbers and its labels.
func (c chart) axes(t theme, line func(string, ...any)) {
	for _, v := range c.YTicks {
		label := short(v)
		if c.YPercent {
			label = fmt.Sprintf("%.0f %%", 100*v)
		}
		line(`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s"/>`, marginLeft, c.y(v),
			plotWidth-marginRight, c.y(v), t.grid)
		line(`<text x="%d" y="%.1f" text-anchor="end" fill="%s">%s</text>`, marginLeft-8, c.y(v)+4, t.muted, label)
	}
	bottom := plotHeight - marginBottom
	line(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"/>`, marginLeft, bottom,
		plotWidth-marginRight, bottom, t.axis)
	for _, v := range c.XTicks {
		line(`<text x="%.1f" y="%d" text-anchor="middle" fill="%s">%s</text>`, c.x(v), bottom+18, t.muted, short(v))
	}
	line(`<text x="%d" y="%d" text-anchor="middle" fill="%s">%s</text>`,
		(marginLeft+plotWidth-marginRight)/2, plotHeight-12, t.muted, html.EscapeString(c.XLabel))
	line(`<text x="16" y="%d" fill="%s">%s</text>`, marginTop-12, t.muted, html.EscapeString(c.YLabel))
}

// short formats a number for an axis.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return trimmed(v/1e6) + "M"
	case v >= 1e3:
		return trimmed(v/1e3) + "k"
	}
	return trimmed(v)
}

func trimmed(v float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

// steps returns at most ten round numbers, from 0 to at least high.
func steps(high float64) []float64 {
	if high <= 0 {
		return []float64{0, 1}
	}
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, factor := range []float64{0.2, 0.25, 0.5, 1, 2} {
		if high/(step*factor) <= 8 {
			step *= factor
			break
		}
	}
	ticks := []float64{0}
	for i := 1; ticks[len(ticks)-1] < high; i++ {
		ticks = append(ticks, float64(i)*step)
	}
	return ticks
}

// highest returns the greatest y of all lines.
func highest(lines []curve) float64 {
	high := 0.0
	for _, l := range lines {
		for _, y := range l.Y {
			high = max(high, y)
		}
	}
	return high
}
