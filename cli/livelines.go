// This part of the package writes the events of a server's stream as lines for people.

package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
)

// liveFilter selects events by what the server does not filter by.
type liveFilter struct {
	// Only attempts that failed, and jobs that died.
	Failed bool `in:"none"`
	// Only jobs with this label. Repeatable.
	Label map[string]string `in:"none" mapsep:"none" placeholder:"NAME=VALUE"`
}

// Selects reports whether the filter selects an event. It selects those that count what the server has left out.
func (f *liveFilter) Selects(e *client.StreamEvent) bool {
	switch {
	case e.Attempt != nil:
		return f.hasLabels(e.Attempt.Labels) && (!f.Failed || e.Attempt.Verdict == "again" ||
			e.Attempt.Verdict == "dead")
	case e.Change != nil:
		return f.hasLabels(e.Change.Labels) && (!f.Failed || e.Change.Kind == "dead")
	}
	return true
}

func (f *liveFilter) hasLabels(labels map[string]string) bool {
	for name, value := range f.Label {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// liveLine is an event for people; empty for one of an unknown kind.
func liveLine(e *client.StreamEvent) string {
	switch {
	case e.Attempt != nil:
		return output.Printable(attemptLine(e.Attempt))
	case e.Change != nil:
		return output.Printable(changeLine(e.Change))
	case e.Skipped > 0:
		return fmt.Sprintf("          … %d more events", e.Skipped)
	}
	return ""
}

func changeLine(c *client.StreamChange) string {
	text := fmt.Sprintf("%s  %-9s %s  %s", liveHour(c.At), c.Kind, c.ID, liveWhere(c.Topic, c.Lane))
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

func attemptLine(a *client.StreamAttempt) string {
	text := fmt.Sprintf("%s  %-9s %s  %s  attempt %d",
		liveHour(a.StartedAt), a.Verdict, a.ID, liveWhere(a.Topic, a.Lane), a.N)
	switch {
	case a.Status != 0:
		text += fmt.Sprintf("  status %d", a.Status)
	case a.ErrorClass != "":
		text += "  " + a.ErrorClass
	}
	if a.DurationMS != nil {
		text += "  " + output.Milliseconds(*a.DurationMS)
	}
	if a.Reason != "" {
		text += "  " + a.Reason
	}
	return text
}

func liveWhere(topic, lane string) string {
	if lane == "" {
		return topic
	}
	return topic + "/" + lane
}

func liveHour(t time.Time) string {
	if t.IsZero() {
		return "        "
	}
	return t.UTC().Format("15:04:05")
}
