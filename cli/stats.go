package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
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

// RunCommand prints the counts.
func (c *statsCommand) RunCommand(ctx context.Context, s *session) error {
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
	view := "stats"
	if c.Topic != "" {
		view = "lanestats"
	}
	if s.out.ForPeople() {
		t, err := s.totals(ctx, statsPath(c.Topic), nil)
		if err != nil {
			return err
		}
		hour, err := s.lastHour(ctx, c.Topic)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(s.Stdout, sentence(t, s.out)+hour); err != nil {
			return err
		}
	}
	r := &apiRequest{Method: http.MethodGet, Path: statsPath(c.Topic), Query: url.Values{}}
	if c.Topic == "" && s.out.ForPeople() {
		r.Complete = s.addLastHour
	}
	_, err := s.list(ctx, r, views[view], c.Limit)
	return err
}

// lastHour says what became of the attempts of a topic in the last hour; empty topic: of all. It says nothing where
// there was none, and for a server that does not know.
func (s *session) lastHour(ctx context.Context, topic string) (string, error) {
	path := "/v1/history"
	if topic != "" {
		path = "/v1/topics/" + url.PathEscape(topic) + "/history"
	}
	h, err := get[client.Buckets](ctx, s, "a history", path, nil)
	if err != nil || len(h.Minutes) == 0 {
		return "", withoutHistory(err)
	}
	hour := client.SumBuckets(h.Minutes, time.Time{})
	text := fmt.Sprintf("; in the last hour %s of %s failed", words.Number(hour.Failed),
		words.Count(hour.Delivered+hour.Failed, "attempt"))
	if hour.Dead > 0 {
		text += ", and " + words.CountVerb(hour.Dead, "job", "died", "died")
	}
	return text, nil
}

// withoutHistory returns an error, but for that of a server that has no history.
func withoutHistory(err error) error {
	if errors.Is(err, client.ErrNotFound) {
		return nil
	}
	return err
}

// addLastHour adds the share of failed attempts of the last hour to the counts of topics, and the jobs that died in it.
func (s *session) addLastHour(ctx context.Context, items []json.RawMessage) error {
	counts, names := make([]map[string]any, len(items)), make([]string, len(items))
	for i := range items {
		if err := json.Unmarshal(items[i], &counts[i]); err != nil {
			return fmt.Errorf("the answer is not a list of counts: %w", err)
		}
		names[i], _ = counts[i]["topic"].(string)
	}
	for from := 0; from < len(items); from += maxHistories {
		some := names[from:min(from+maxHistories, len(names))]
		all, err := get[client.History](ctx, s, "a history", "/v1/history",
			url.Values{"topics": {strings.Join(some, ",")}, "by": {"minutes"}})
		if err != nil {
			return withoutHistory(err)
		}
		for i := range min(len(some), len(all.Items)) {
			hour := client.SumBuckets(all.Items[i].Minutes, time.Time{})
			of := map[string]any{"dead": hour.Dead}
			if n := hour.Delivered + hour.Failed; n > 0 {
				of["failed_percent"] = (100*hour.Failed + n - 1) / n // not 0 where one failed
			}
			counts[from+i]["last_hour"] = of
			if items[from+i], err = json.Marshal(counts[from+i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxHistories is the number of topics that a request for histories may name.
const maxHistories = 100

// statsPath is the path of the counts of a topic; empty: of all.
func statsPath(topic string) string {
	if topic == "" {
		return "/v1/stats"
	}
	return "/v1/topics/" + url.PathEscape(topic) + "/stats"
}

// totals returns the counts of all topics, or of one: what has the path.
func (s *session) totals(ctx context.Context, path string, header http.Header) (*client.Counts, error) {
	answer, err := s.do(ctx,
		&apiRequest{Method: http.MethodGet, Path: path, Query: url.Values{"limit": {"1"}}, Header: header})
	if err != nil {
		return nil, err
	}
	all, err := as[struct {
		client.Counts
		Totals *client.Counts
	}](answer, "counts")
	if err != nil {
		return nil, err
	}
	return cmp.Or(all.Totals, &all.Counts), nil
}

// sentence is the totals in words.
func sentence(t *client.Counts, out *output.Printer) string {
	text := fmt.Sprintf("%s: %s scheduled, %s ready, %s running, %s delivered, %s dead, %s cancelled",
		words.Count(t.Registered, "job"), words.Number(t.Scheduled), words.Number(t.Ready), words.Number(t.Running),
		words.Number(t.Delivered), words.Number(t.Dead), words.Number(t.Cancelled))
	if !t.OldestDueAt.IsZero() && t.OldestDueAt.Before(time.Now()) {
		text += "; the oldest was due " + out.Time(t.OldestDueAt)
	}
	if t.BreakersOpen > 0 {
		text += "; " + words.Count(t.BreakersOpen, "breaker") + " open"
	}
	if t.LanesFailing > 0 {
		text += "; " + words.CountVerb(t.LanesFailing, "receiver", "fails", "fail")
	}
	return text
}
