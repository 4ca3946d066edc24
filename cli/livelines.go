// This part of the package writes the updates of a server's stream as lines for people.

package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
)

// liveFilter selects updates by what the server does not filter by.
type liveFilter struct {
	// Only attempts that failed, and jobs that died.
	Failed bool `in:"none"`
	// Only jobs with this label. Repeatable.
	Label map[string]string `in:"none" mapsep:"none" placeholder:"NAME=VALUE"`
}

// Selects reports whether the filter selects an update. It selects those that count what the server has left out.
func (f *liveFilter) Selects(e *client.StreamUpdate) bool {
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

// liveLine is an update for people; empty for one of an unknown kind.
func liveLine(e *client.StreamUpdate) string {
	switch {
	case e.Attempt != nil:
		return output.Printable(attemptLine(e.Attempt))
	case e.Change != nil:
		return output.Printable(changeLine(e.Change))
	case e.Skipped > 0:
		return fmt.Sprintf("          … %d more updates", e.Skipped)
	}
	return ""
}

func changeLine(c *client.StreamChange) string {
	by := ""
	if c.Actor != "" {
		by = "by " + c.Actor
	}
	text := fmt.Sprintf("%s  %-9s %s", liveHour(c.At), c.Kind, c.ID)
	return apart(text, liveWhere(c.Topic, c.Lane), strings.Join(c.Fields, ","), c.Reason, by)
}

func attemptLine(a *client.StreamAttempt) string {
	result, took := a.ErrorClass, ""
	if a.Status != 0 {
		result = fmt.Sprintf("status %d", a.Status)
	}
	if a.DurationMS != nil {
		took = output.Milliseconds(*a.DurationMS)
	}
	text := fmt.Sprintf("%s  %-9s %s", liveHour(a.StartedAt), a.Verdict, a.ID)
	return apart(text, liveWhere(a.Topic, a.Lane), fmt.Sprintf("attempt %d", a.N), result, took, a.Reason)
}

// apart joins the texts that are not empty, with two spaces between.
func apart(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "  ")
}

func liveWhere(topic, lane string) string {
	if lane == "" {
		return topic
	}
	return topic + "/" + lane
}

func liveHour(t time.Time) string {
	if t.IsZero() {
		return "            "
	}
	return t.UTC().Format("15:04:05.000")
}
