package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// module is the prefix of the import paths of this module's packages.
const module = "github.com/ringback/ringback/"

// event is a line of go test -json.
type event struct {
	Time       time.Time
	Action     string
	Package    string
	ImportPath string // of build output, instead of Package
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

// testKey names a test, or the package itself if test is empty.
type testKey struct{ pkg, test string }

// failure is a failed test, or a package that failed outside of its tests.
type failure struct {
	testKey
	reason []string
}

// report collects the results of packages. It is not safe for concurrent use.
type report struct {
	out, log io.Writer
	logPath  string
	total    int // packages
	ended    int
	output   map[testKey][]string  // lines of what has not ended
	running  map[testKey]time.Time // when it began
	failed   map[string]bool       // packages with a failed test
	failures []failure
	build    map[string][]string // output of the compiler, by package
}

func newReport(out, log io.Writer, logPath string, total int) *report {
	return &report{
		out: out, log: log, logPath: logPath, total: total, output: make(map[testKey][]string),
		running: make(map[testKey]time.Time), failed: make(map[string]bool), build: make(map[string][]string),
	}
}

// note adds an event. It reports whether something ended.
func (r *report) note(e event) bool {
	key := testKey{strings.TrimPrefix(e.Package, module), e.Test}
	switch e.Action {
	case "output":
		_, _ = io.WriteString(r.log, e.Output) // a full disk shows when it is flushed
		r.output[key] = append(r.output[key], strings.TrimRight(e.Output, "\n"))
		if e.Package == "" { // of the go command itself
			_, _ = io.WriteString(r.out, e.Output)
		}
	case "build-output":
		_, _ = io.WriteString(r.log, e.Output)
		r.build[e.ImportPath] = append(r.build[e.ImportPath], strings.TrimRight(e.Output, "\n"))
	case "run", "cont", "start":
		r.running[key] = e.Time
	case "pause": // until others that run in parallel end
		delete(r.running, key)
	case "pass", "skip", "fail":
		delete(r.running, key)
		lines := r.output[key]
		delete(r.output, key)
		if e.Action == "fail" {
			r.fail(key, lines)
		}
		if e.Test == "" {
			r.endPackage(key.pkg, e, lines)
		}
		return e.Test == ""
	}
	return false
}

// fail adds a failed test or package. A parent of failed subtests without a reason, and a package with failed tests,
// add nothing.
func (r *report) fail(key testKey, lines []string) {
	switch {
	case key.test == "" && r.failed[key.pkg]:
	case key.test == "":
		for path, output := range r.build { // a test binary is built as "pkg [pkg.test]"
			if strings.Contains(path+" ", module+key.pkg+" ") || strings.Contains(path, "["+module+key.pkg+".test]") {
				lines = append(lines, output...)
			}
		}
		r.failures = append(r.failures, failure{key, reasonOf(lines)})
	default:
		r.failed[key.pkg] = true
		child := slices.ContainsFunc(r.failures, func(f failure) bool {
			return f.pkg == key.pkg && strings.HasPrefix(f.test, key.test+"/")
		})
		reason := reasonOf(lines)
		if child && len(reason) == 0 {
			return
		}
		r.failures = append(r.failures, failure{key, reason})
		fmt.Fprintf(r.out, "FAIL  %s %s\n", key.pkg, key.test)
	}
}

// endPackage prints the line of a package. Packages without tests have none.
func (r *report) endPackage(pkg string, e event, lines []string) {
	r.ended++
	if e.Action == "skip" {
		return
	}
	word := "ok  "
	if e.Action == "fail" {
		word = "FAIL"
	}
	took := fmt.Sprintf("%.1fs", e.Elapsed)
	if slices.ContainsFunc(lines, func(line string) bool { return strings.HasSuffix(line, "(cached)") }) {
		took = "cached"
	}
	fmt.Fprintf(r.out, "%s  %-40s %8s  %d of %d\n", word, pkg, took, r.ended, max(r.total, r.ended))
}

// nameRunning prints the tests that have run for longest, as far as they are known to run.
func (r *report) nameRunning() {
	type test struct {
		name  string
		since time.Time
	}
	var all []test
	for key, since := range r.running {
		if key.test != "" && !strings.Contains(key.test, "/") {
			all = append(all, test{key.pkg + " " + key.test, since})
		}
	}
	slices.SortFunc(all, func(a, b test) int { return a.since.Compare(b.since) })
	var names []string
	for _, t := range all[:min(len(all), 4)] {
		names = append(names, fmt.Sprintf("%s (%s)", t.name, time.Since(t.since).Round(time.Second)))
	}
	if len(names) == 0 {
		names = []string{"the compiler"}
	}
	fmt.Fprintf(r.out, "      still running: %s\n", strings.Join(names, ", "))
}

// summaryLines bounds the lines of a summary.
const summaryLines = 20

// summarize prints the failures. It reports whether there are none.
func (r *report) summarize() bool {
	missing := r.missing()
	if len(r.failures) == 0 && missing == "" {
		return true
	}
	fmt.Fprintln(r.out)
	left := summaryLines - 4 // for the other lines
	each := max(3, left/max(1, len(r.failures)))
	for i, f := range r.failures {
		lines := f.lines()
		lines = append(lines[:1:1], append(lines[1 : len(lines)-1][:min(len(lines)-2, each-2)], lines[len(lines)-1])...)
		if left -= len(lines); left < 0 {
			fmt.Fprintf(r.out, "and %d more failures\n", len(r.failures)-i)
			break
		}
		for _, line := range lines {
			fmt.Fprintln(r.out, cut(line))
		}
	}
	if missing != "" {
		fmt.Fprintln(r.out, missing)
	}
	fmt.Fprintf(r.out, "The complete output is in %s.\n", r.logPath)
	return false
}

// missing returns a line about packages whose end was not reported, because a go command failed or was ended; else
// nothing.
func (r *report) missing() string {
	if r.ended >= r.total {
		return ""
	}
	line := fmt.Sprintf("FAIL %d of %d packages did not end", r.total-r.ended, r.total)
	running := make(map[string]bool)
	for key := range r.running {
		running[key.pkg] = true
	}
	if len(running) > 0 {
		line += ", among them " + strings.Join(slices.Sorted(maps.Keys(running)), ", ")
	}
	return cut(line)
}

// lines returns the lines of a failure: its name, its reason and how to run it alone.
func (f failure) lines() []string {
	name, again := "FAIL "+f.pkg, "make test PKG=./"+f.pkg
	if f.test != "" {
		name += " " + f.test
		again += " RUN='" + pattern(f.test) + "'"
	}
	lines := []string{name}
	for _, line := range f.reason {
		lines = append(lines, "     "+line)
	}
	return append(lines, "     alone: "+again)
}

// pattern returns the value of -run that selects a test. A $ is doubled for make.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + quote(p) + "$$"
	}
	return strings.Join(parts, "/")
}

// quote replaces what the shell, make or a pattern would interpret by a full stop, which matches it.
func quote(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`\.+*?()|[]{}^$'#`, r) {
			return '.'
		}
		return r
	}, name)
}

// cut bounds a line for a terminal.
func cut(line string) string {
	const width = 200
	if len(line) > width {
		return line[:width] + "…"
	}
	return line
}
