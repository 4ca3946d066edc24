package doctor

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ringback/ringback/internal/utf8text"
)

// A Level says how bad a finding is.
type Level string

// The levels, the worst first.
const (
	Fault   Level = "fault"   // jobs can be lost or are not delivered, or the service does not start
	Warn    Level = "warn"    // it works, and will not under some circumstances
	Unknown Level = "unknown" // it could not be looked at
	OK      Level = "ok"
)

// levels are the levels, the worst first.
var levels = []Level{Fault, Warn, Unknown, OK}

// A Finding is the result of a check.
type Finding struct {
	// Check is the name of the check.
	Check Name `json:"check"`
	// Subject is what was looked at: settings, process, server, or a store.
	Subject string `json:"subject"`
	Level   Level  `json:"level"`
	// Seen is what was found, in words.
	Seen string `json:"seen"`
	// Remedy is what to do; empty: nothing.
	Remedy string `json:"remedy,omitempty"`
	// Docs is the section of the documentation about the check.
	Docs string `json:"docs"`
}

// good returns a finding that nothing is wrong.
func good(seen string, args ...any) Finding {
	return Finding{Level: OK, Seen: fmt.Sprintf(seen, args...)}
}

// fault, warn and unknown return findings of these levels with a remedy.
func fault(remedy, seen string, args ...any) Finding { return bad(Fault, remedy, seen, args...) }

func warn(remedy, seen string, args ...any) Finding { return bad(Warn, remedy, seen, args...) }

func unknown(remedy, seen string, args ...any) Finding { return bad(Unknown, remedy, seen, args...) }

func bad(level Level, remedy, seen string, args ...any) Finding {
	return Finding{Level: level, Remedy: remedy, Seen: fmt.Sprintf(seen, args...)}
}

// of returns findings as those of a check.
func (n Name) of(found ...Finding) []Finding {
	for i := range found {
		found[i].Check = n
	}
	return found
}

// Compare returns a negative number if a is worse than b, a positive one if b is worse than a, else 0.
func Compare(a, b Level) int { return slices.Index(levels, a) - slices.Index(levels, b) }

// Worst returns the worst level of findings, OK if there are none.
func Worst(findings []Finding) Level {
	worst := OK
	for _, f := range findings {
		if Compare(f.Level, worst) < 0 {
			worst = f.Level
		}
	}
	return worst
}

// sortFindings sorts the findings of one subject by check, in the order of Checks.
func sortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Compare(slices.Index(Checks, a.Check), slices.Index(Checks, b.Check))
	})
}

// WriteText writes findings for people, by subject, with a summary.
func WriteText(w io.Writer, findings []Finding) error {
	width := 0
	for _, f := range findings {
		width = max(width, len(f.Check))
	}
	var text strings.Builder
	subject, count := "", map[Level]int{}
	for _, f := range findings {
		if f.Subject != subject {
			subject = f.Subject
			fmt.Fprintf(&text, "%s\n", printable(subject))
		}
		count[f.Level]++
		level := string(f.Level)
		if f.Level == Fault || f.Level == Warn {
			level = strings.ToUpper(level)
		}
		fmt.Fprintf(&text, "  %-7s  %-*s  %s\n", level, width, f.Check, printable(f.Seen))
		if f.Remedy != "" {
			fmt.Fprintf(&text, "  %-7s  %-*s  to do: %s (%s)\n", "", width, "", printable(f.Remedy), f.Docs)
		}
	}
	fmt.Fprintf(&text, "\n%d checks: %d faults, %d warnings, %d unknown\n", len(findings), count[Fault],
		count[Warn], count[Unknown])
	_, err := io.WriteString(w, text.String())
	return err // the writer is the caller's
}

// printable returns a text as one line, without what a server may have put into it to control a terminal or to change
// how it looks.
func printable(text string) string {
	text = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(text)
	return utf8text.ReplaceInvisible(text, func(rune) string { return " " })
}
