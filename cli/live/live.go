// Package live writes the events of a server's stream as lines for people.
package live

import (
	"fmt"
	"strings"
	"time"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
)

// Filter selects events by what the server does not filter by.
type Filter struct {
	// Only attempts that failed, and jobs that died.
	Failed bool `in:"none"`
	// Only jobs with this label. Repeatable.
	Label map[string]string `in:"none" mapsep:"none" placeholder:"NAME=VALUE"`
}

// Selects reports whether the filter selects an event. It selects those that count what the server has left out.
func (f *Filter) Selects(e *client.StreamEvent) bool {
	switch {
	case e.Attempt != nil:
		return f.hasLabels(e.Attempt.Labels) && (!f.Failed || e.Attempt.Verdict == "again" ||
			e.Attempt.Verdict == "dead")
	case e.Change != nil:
		return f.hasLabels(e.Change.Labels) && (!f.Failed || e.Change.Kind == "dead")
	}
	return true
}

func (f *Filter) hasLabels(labels map[string]string) bool {
	for name, value := range f.Label {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// Line is an event for people; empty for one of an unknown kind.
func Line(e *client.StreamEvent) string {
	switch {
	case e.Attempt != nil:
		return output.Printable(attempt(e.Attempt))
	case e.Change != nil:
		return output.Printable(change(e.Change))
	case e.Skipped > 0:
		return fmt.Sprintf("          … %d more events", e.Skipped)
	}
	return ""
}

func change(c *client.StreamChange) string {
	text := fmt.Sprintf("%s  %-9s %s  %s", hour(c.At), c.Kind, c.ID, where(c.Topic, c.Lane))
	if len(c.Fields) > 0 {
		text += "  " + strings.Join(c.Fields, ",")
	}
	if c.Reason != "" {
		text += "  " + c.Reason
	}
	if c.Actor != "" {
		text += "  by " + c.Actor
	}
	return text
}

func attempt(a *client.StreamAttempt) string {
	text := fmt.Sprintf("%s  %-9s %s  %s  attempt %d", hour(a.StartedAt), a.Verdict, a.ID, where(a.Topic, a.Lane), a.N)
	switch {
	case a.Status != 0:
		text += fmt.Sprintf("  status %d", a.Status)
	case a.ErrorClass != "":
		text += "  " + a.ErrorClass
	}
	if a.DurationMS != nil {
		text += "  " + output.Span(time.Duration(*a.DurationMS*float64(time.Millisecond)))
	}
	if a.Reason != "" {
		text += "  " + a.Reason
	}
	return text
}

func where(topic, lane string) string {
	if lane == "" {
		return topic
	}
	return topic + "/" + lane
}

func hour(t time.Time) string {
	if t.IsZero() {
		return "        "
	}
	return t.UTC().Format("15:04:05")
}
