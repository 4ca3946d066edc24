package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	docsPage   = "benchmarks.md"
	docsFolder = "benchmarks"
	// The text between these marks is replaced at each run; the rest of the page is kept.
	docsBegin = "<!-- measured: written by ringback-bench, do not edit -->"
	docsEnd   = "<!-- measured: end -->"
)

// newPage is the text around the figures of a new page.
const newPage = `# Benchmarks

Ringback compared with its peers, and with a bare loop of requests as the limit of the machine. Run ` + "`make bench`" +
	`, or one of the commands
that ` + "`bench/main.go`" +
	` lists, to repeat it. The figures below are one such run. Requests go over plain HTTP unless a figure names https.

` + docsBegin + `
` + docsEnd + `
`

// A plot is a chart of a figure's curves.
type plot struct {
	file  string
	draw  func(f *result) chart
	of    string // the figure
	words string // alternative text
}

var plots = []plot{
	{"throughput", throughputChart, "concurrency", "Deliveries a second by concurrency"},
	{"lateness", latenessChart, "lateness", "Share of jobs that arrived within a time after they were due"},
	{"memory", memoryChart, "memory", "Redis memory by number of waiting jobs"},
}

func throughputChart(f *result) chart {
	ticks := steps(highest(f.Curves))
	levels := f.Curves[0].X
	return chart{
		Title: "Deliveries a second by concurrency", XLabel: "attempts at a time", YLabel: "deliveries a second",
		Log: true, Low: levels[0], High: max(levels[len(levels)-1], levels[0]+1), XTicks: levels,
		YHigh: ticks[len(ticks)-1], YTicks: ticks, Marks: true, Lines: f.Curves,
	}
}

func latenessChart(f *result) chart {
	return chart{
		Title:  fmt.Sprintf("From due to arrival, %d jobs a second", lateRate),
		XLabel: "ms after the due moment, or less (the left edge: early ones, too)", YLabel: "share of jobs",
		Log: true, Low: 0.1, High: 10_000, XTicks: []float64{0.1, 1, 10, 100, 1000, 10_000},
		YHigh: 1, YTicks: []float64{0, 0.25, 0.5, 0.75, 1}, YPercent: true, Lines: f.Curves,
	}
}

func memoryChart(f *result) chart {
	ticks := steps(highest(f.Curves))
	across := f.Curves[0].X
	high := across[len(across)-1]
	return chart{
		Title: "Redis memory by waiting jobs", XLabel: "jobs of a 36 B URL and a 64 B body", YLabel: "MB",
		High: high, XTicks: steps(high), YHigh: ticks[len(ticks)-1], YTicks: ticks, Marks: true, Lines: f.Curves,
	}
}

// writeDocs writes the page's figures, the plots, and every raw run beside them.
func writeDocs(dir string, d *document) error {
	folder := filepath.Join(dir, docsFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // for everyone to read
		return fmt.Errorf("write the docs: %w", err)
	}
	if err := d.write(filepath.Join(folder, "runs.json")); err != nil {
		return err
	}
	var pictures strings.Builder
	for _, p := range plots {
		f := d.figure(p.of)
		if f == nil || len(f.Curves) == 0 {
			continue
		}
		c := p.draw(f)
		for name, t := range themes {
			path := filepath.Join(folder, p.file+"-"+name+".svg")
			if err := os.WriteFile(path, []byte(c.svg(t)), 0o644); err != nil { //nolint:gosec // as above
				return fmt.Errorf("write a plot: %w", err)
			}
		}
		fmt.Fprintf(&pictures, "\n<picture>\n  <source media=\"(prefers-color-scheme: dark)\" "+
			"srcset=\"%[1]s/%[2]s-dark.svg\">\n"+
			"  <img alt=\"%[3]s\" src=\"%[1]s/%[2]s-light.svg\">\n</picture>\n", docsFolder, p.file, p.words)
	}
	path := filepath.Join(dir, docsPage)
	page, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		page = []byte(newPage)
	case err != nil:
		return fmt.Errorf("read the page: %w", err)
	}
	text, err := between(string(page),
		d.markdown()+pictures.String()+"\nEvery run: ["+docsFolder+"/runs.json]("+docsFolder+"/runs.json).\n")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // as above
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// between replaces the text between the marks of a page.
func between(page, text string) (string, error) {
	before, rest, ok := strings.Cut(page, docsBegin)
	_, after, ended := strings.Cut(rest, docsEnd)
	if !ok || !ended {
		return "", fmt.Errorf("%s has no %q with %q after it", docsPage, docsBegin, docsEnd)
	}
	return before + docsBegin + "\n\n" + text + "\n" + docsEnd + after, nil
}
