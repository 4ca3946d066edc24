package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ringback/ringback/cli/forward"
	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/cli/request"
	"github.com/ringback/ringback/client"
)

// tailCommand is ringback tail.
type tailCommand struct {
	Topic   string            `placeholder:"TOPIC" help:"Only this topic."`
	Lane    string            `placeholder:"LANE" help:"Only this lane, and the pauses of its topic."`
	Verdict string            `placeholder:"VERDICT" help:"Only attempts with this verdict: delivered, again, dead or released."`
	Failed  bool              `in:"none" help:"Only attempts that failed, and jobs that died."`
	Label   map[string]string `in:"none" mapsep:"none" placeholder:"NAME=VALUE" help:"Only jobs with this label. Repeatable."`
	Count   int               `in:"none" placeholder:"N" help:"End after this number of events. Default: never."`
	connection
}

// reconnectPause is the time between the end of a stream and the next one.
const reconnectPause = 2 * time.Second

// Run prints events until it is stopped. It connects again when the server ends a stream.
func (c *tailCommand) Run(ctx context.Context, e *Environment) error {
	s, err := c.open(e)
	if err != nil {
		return err
	}
	r := &request.Request{Method: http.MethodGet, Path: "/v1/stream", Query: url.Values{}, Header: http.Header{"Accept": {"text/event-stream"}}}
	for name, value := range map[string]string{"topic": c.Topic, "lane": c.Lane, "verdict": c.Verdict} {
		if value != "" {
			r.Query.Set(name, value)
		}
	}
	left := c.Count
	connected := false
	again := func() error {
		err := s.stream(ctx, r, func(kind string, data json.RawMessage) error {
			connected = true
			return c.print(s, kind, data, &left)
		})
		if !connected || exitCode(err) != ExitUnavailable || ctx.Err() != nil {
			return err
		}
		s.say("%s; connecting again", output.Printable(firstLine(err)))
		return sleep(ctx, reconnectPause)
	}
	for err == nil {
		err = again()
	}
	if ctx.Err() != nil || errors.Is(err, errEnough) {
		return nil //nolint:nilerr // stopping it is how it ends
	}
	return err
}

// errEnough ends a stream after the events that were asked for.
var errEnough = errors.New("enough events")

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// stream reads server-sent events until the server ends them. The event "open" tells that the server has answered.
func (s *session) stream(ctx context.Context, r *request.Request, event func(kind string, data json.RawMessage) error) error {
	if s.out.Format() == output.Curl {
		if err := s.printRequest(r); err != nil {
			return err
		}
		return errPrinted
	}
	resp, err := s.send(ctx, r)
	if err != nil {
		return s.unavailable(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		return problemOf(resp.StatusCode, answer)
	}
	if err := event("open", nil); err != nil {
		return err
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswer)
	kind := ""
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			kind = value
		case "data":
			if err := event(kind, json.RawMessage(value)); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return s.unavailable(ctx, err)
	}
	return &unavailableError{errors.New("the server ended the stream")}
}

// print prints an event: a line for people, or the event with its kind as event.
func (c *tailCommand) print(s *session, kind string, data json.RawMessage, left *int) error {
	switch kind {
	case "open":
		if s.out.ForPeople() {
			s.say("watching %s", s.target.Server)
		}
		return nil
	case "problem":
		var p client.Problem
		if err := json.Unmarshal(data, &p); err != nil {
			return &unavailableError{errors.New("the server ended the stream")}
		}
		return &p
	}
	var ev liveEvent
	if err := json.Unmarshal(data, &ev); err != nil {
		return fmt.Errorf("an event is not JSON: %w", err)
	}
	if !c.selects(kind, &ev) {
		return nil
	}
	if err := s.printEvent(kind, &ev, data); err != nil {
		return err
	}
	if *left--; *left == 0 { // it begins with 0 if there is no end
		return errEnough
	}
	return nil
}

func (s *session) printEvent(kind string, ev *liveEvent, data json.RawMessage) error {
	if s.out.ForPeople() {
		_, err := fmt.Fprintln(s.Stdout, output.Printable(ev.line(kind)))
		return err
	}
	all := request.Fields{}
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("an event is not an object: %w", err)
	}
	all.Set("event", kind)
	return s.out.One(all.Encode())
}

// liveEvent is what tail reads of an event.
type liveEvent struct {
	At                 *time.Time
	ID, Topic, Lane    string
	Kind, Actor        string
	Fields             []string
	N, Status, Skipped int
	DurationMS         *float64 `json:"duration_ms"`
	Verdict, Reason    string
	Error              string
	ErrorClass         string `json:"error_class"`
	Labels             map[string]string
	Started            *time.Time `json:"started_at"`
}

// selects applies the flags that the server does not know.
func (c *tailCommand) selects(kind string, ev *liveEvent) bool {
	if kind == "skipped" {
		return true
	}
	for name, value := range c.Label {
		if ev.Labels[name] != value {
			return false
		}
	}
	if !c.Failed {
		return true
	}
	return kind == "attempt" && (ev.Verdict == "again" || ev.Verdict == "dead") || kind == "change" && ev.Kind == "dead"
}

// line is an event for people.
func (ev *liveEvent) line(kind string) string {
	subject := strings.TrimSpace(ev.ID)
	switch kind {
	case "skipped":
		return fmt.Sprintf("          … %d more events", ev.Skipped)
	case "change":
		text := fmt.Sprintf("%s  %-9s %s  %s", hour(ev.At), ev.Kind, subject, where(ev.Topic, ev.Lane))
		if len(ev.Fields) > 0 {
			text += "  " + strings.Join(ev.Fields, ",")
		}
		if ev.Reason != "" {
			text += "  " + ev.Reason
		}
		if ev.Actor != "" {
			text += "  by " + ev.Actor
		}
		return text
	}
	text := fmt.Sprintf("%s  %-9s %s  %s  attempt %d", hour(ev.Started), ev.Verdict, subject, where(ev.Topic, ev.Lane), ev.N)
	switch {
	case ev.Status != 0:
		text += fmt.Sprintf("  status %d", ev.Status)
	case ev.ErrorClass != "":
		text += "  " + ev.ErrorClass
	}
	if ev.DurationMS != nil {
		text += "  " + output.Span(time.Duration(*ev.DurationMS*float64(time.Millisecond)))
	}
	if ev.Reason != "" {
		text += "  " + ev.Reason
	}
	return text
}

func where(topic, lane string) string {
	if lane == "" {
		return topic
	}
	return topic + "/" + lane
}

func hour(t *time.Time) string {
	if t == nil {
		return "        "
	}
	return t.UTC().Format("15:04:05")
}

// forwardCommand is ringback forward.
type forwardCommand struct {
	forward.Flags
	connection
}

// Run passes jobs on until it is stopped.
func (c *forwardCommand) Run(ctx context.Context, e *Environment) error {
	s, err := c.open(e)
	if err != nil {
		return err
	}
	return forward.Command(ctx, &c.Flags, forward.Options{Client: s.client, Agent: "Ringback/" + e.Version}, s.out, s.Stderr)
}
