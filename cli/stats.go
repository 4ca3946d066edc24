package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/ringback/ringback/cli/output"
)

// statsCommand is ringback stats.
type statsCommand struct {
	// Topic whose lanes are counted. Default: all topics.
	Topic string `arg:"" optional:""`
	// Show the counts again and again, until it is stopped.
	Watch bool `short:"w"`
	// Time between two counts (default 2s).
	Every duration `default:"2s" placeholder:"DURATION"`
	page
	connection
}

// Run prints the counts.
func (c *statsCommand) Run(ctx context.Context, e *Environment) error {
	s, err := c.open(e)
	if err != nil {
		return err
	}
	if c.Every.Duration < time.Second {
		return usagef("--every: must be at least 1s")
	}
	for first := true; ; first = false {
		if c.Watch && isTerminal(s.Stdout) && s.out.ForPeople() {
			fmt.Fprint(s.Stdout, "\x1b[H\x1b[2J")
		}
		if err := c.show(ctx, s); err != nil && (first || codeOf(err) != Unavailable) {
			return err
		} else if err != nil {
			s.say("%s", output.Printable(FirstLine(err)))
		}
		if !c.Watch || !pause(ctx, c.Every.Duration) {
			return nil
		}
	}
}

// show prints the totals on a line, and a line for each topic or lane.
func (c *statsCommand) show(ctx context.Context, s *session) error {
	path, view := "/v1/stats", "stats"
	if c.Topic != "" {
		path, view = "/v1/topics/"+url.PathEscape(c.Topic)+"/stats", "lanestats"
	}
	if s.out.ForPeople() {
		answer, err := s.do(ctx,
			&apiRequest{Method: http.MethodGet, Path: path, Query: url.Values{"limit": {"1"}}})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(s.Stdout, sentence(answer, s.out)); err != nil {
			return err
		}
	}
	_, err := s.list(ctx,
		&apiRequest{Method: http.MethodGet, Path: path, Query: url.Values{}}, views[view], c.Limit)
	return err
}

// counts are the totals of all topics, or of one.
type counts struct {
	Registered, Scheduled, Ready, Running, Delivered, Dead, Cancelled int64
	OldestDueAt                                                       *time.Time `json:"oldest_due_at"`
	BreakersOpen                                                      int64      `json:"breakers_open"`
}

func readCounts(answer json.RawMessage) (counts, error) {
	var all struct {
		counts
		Totals *counts
	}
	if err := json.Unmarshal(answer, &all); err != nil {
		return counts{}, fmt.Errorf("the answer has no counts: %w", err)
	}
	if all.Totals != nil {
		return *all.Totals, nil
	}
	return all.counts, nil
}

// sentence is the totals in words.
func sentence(answer json.RawMessage, out *output.Printer) string {
	t, err := readCounts(answer)
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("%s: %s scheduled, %s ready, %s running, %s delivered, %s dead, %s cancelled",
		output.Jobs(t.Registered), output.Number(t.Scheduled), output.Number(t.Ready), output.Number(t.Running),
		output.Number(t.Delivered), output.Number(t.Dead), output.Number(t.Cancelled))
	if t.OldestDueAt != nil && t.OldestDueAt.Before(time.Now()) {
		text += "; the oldest was due " + out.Time(*t.OldestDueAt)
	}
	if t.BreakersOpen > 0 {
		text += fmt.Sprintf("; %s breakers open", output.Number(t.BreakersOpen))
	}
	return text
}
