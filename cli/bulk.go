package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// bulk is a command that begins work on many jobs: it counts them, asks, and shows the progress. The work goes on in
// the server when the command is ended.
type bulk struct {
	// Only count the jobs.
	DryRun bool `in:"none"`
	// Do not wait for the end of the work.
	Detach bool `in:"none"`
	confirmed
	connection
}

// RunCommand begins the work of the command's request.
func (c *bulk) RunCommand(ctx context.Context, k *kong.Context, s *session, r *apiRequest) error {
	if r.Body == nil {
		r.Body = requestFields{}
	}
	return c.start(ctx, s, r, k.Selected().Name)
}

// RunCommand begins the work: the selection is a member of the request, and so is the change.
func (c *startWork) RunCommand(ctx context.Context, s *session, r *apiRequest) error {
	change := requestFields{}
	for _, text := range c.Set {
		if err := change.Assign(text); err != nil {
			return err
		}
	}
	r.Body.nestSelection()
	if len(change) > 0 {
		r.Body["change"] = change.Encode()
	}
	return c.start(ctx, s, r, c.Action)
}

// RunCommand begins the replay: the selection is a member of the request.
func (c *replayEvents) RunCommand(ctx context.Context, s *session, r *apiRequest) error {
	r.Body.Set("action", client.ActionReplay)
	r.Body.nestSelection()
	return c.start(ctx, s, r, client.ActionReplay)
}

// nestSelection makes the fields that select jobs a member.
func (f requestFields) nestSelection() {
	where := requestFields{}
	for name, value := range f {
		if !slices.Contains([]string{"action", "rate", "lane_rate"}, name) {
			where[name] = value
			delete(f, name)
		}
	}
	f["where"] = where.Encode()
}

// start counts the jobs, asks, begins the work and shows its progress.
func (c *bulk) start(ctx context.Context, s *session, r *apiRequest, action string) error {
	if c.DryRun || !c.Yes && s.out.Format() != output.Curl {
		r.Body.Set("dry_run", true)
		answer, err := s.do(ctx, r)
		if err != nil {
			return err
		}
		if c.DryRun {
			if s.out.ForPeople() {
				s.say("counted %s; nothing is changed", place(s.target))
			}
			return s.out.One(answer)
		}
		goOn, err := c.ask(ctx, s, action, answer)
		if err != nil || !goOn {
			return err
		}
		delete(r.Body, "dry_run")
	}
	answer, err := s.do(ctx, r)
	if err != nil {
		return err
	}
	if c.Detach {
		s.say("the work goes on in the server: ringback work wait %s shows it",
			output.Printable(output.Texts(answer)["id"]))
		return s.out.One(answer)
	}
	return s.follow(ctx, answer)
}

// ask shows how many jobs match, and asks whether to go on.
func (c *bulk) ask(ctx context.Context, s *session, action string, answer json.RawMessage) (bool, error) {
	count, err := as[client.WorkCount](answer, "a count")
	if err != nil {
		return false, err
	}
	if count.Matched == 0 && count.Exact {
		s.say("no job matches: nothing is changed")
		return false, nil
	}
	for _, g := range count.Groups {
		s.say("%12s  %s", words.Number(g.Count), output.Printable(strings.TrimSpace(g.Topic+"  "+g.Reason)))
	}
	atLeast := ""
	if !count.Exact {
		atLeast = "at least "
	}
	question := fmt.Sprintf("%s %s%s?", words.UpperFirst(action), atLeast, words.Count(count.Matched, "job"))
	return true, s.confirm(ctx, question, false)
}

// waitWork is ringback work wait.
type waitWork struct {
	// Id of the work.
	ID string `arg:""`
	connection
}

// RunCommand shows the progress of the work.
func (c *waitWork) RunCommand(ctx context.Context, s *session) error {
	answer, err := s.do(ctx, &apiRequest{Method: http.MethodGet, Path: "/v1/work/" + url.PathEscape(c.ID)})
	if err != nil {
		return err
	}
	return s.follow(ctx, answer)
}

// follow shows the progress of work until it has ended. A server that is away for a while does not end it.
func (s *session) follow(ctx context.Context, answer json.RawMessage) error {
	begun, err := as[client.Work](answer, "work")
	if err == nil && begun.ID == "" {
		err = errors.New("the answer is not work")
	}
	if err != nil {
		return err
	}
	bar := isTerminal(s.Stderr)
	w, err := s.client.WaitWork(ctx, begun.ID, func(w *client.Work) {
		if bar {
			fmt.Fprintf(s.Stderr, "\r\x1b[K%s", progressBar(w, time.Now()))
		}
	})
	if err != nil {
		if bar {
			fmt.Fprintln(s.Stderr)
		}
		s.say("the work goes on in the server: ringback work wait %s shows it, ringback work stop %s stops it",
			begun.ID, begun.ID)
		return s.failure(ctx, err)
	}
	if bar {
		fmt.Fprint(s.Stderr, "\r\x1b[K")
	}
	return s.workEnded(w)
}

// workEnded prints work that has ended, and returns an error if it did not do all.
func (s *session) workEnded(w *client.Work) error {
	text := fmt.Sprintf("%s %s is %s: %s done, %s failed, %s skipped", w.Action, w.ID, w.State, words.Number(w.Done),
		words.Number(w.Failed), words.Number(w.Skipped))
	if err := s.out.OneLine(output.Printable(text), w.Raw); err != nil {
		return err
	}
	for _, f := range w.Failures {
		if s.out.ForPeople() {
			s.say("  %s %s", output.Printable(f.ID), output.Printable(f.Reason))
		}
	}
	if w.State != "done" || w.Failed > 0 {
		return &ExitError{Code: failed}
	}
	return nil
}

// progressBar is the progress of work on one line.
func progressBar(w *client.Work, now time.Time) string {
	treated := w.Done + w.Failed + w.Skipped
	text := fmt.Sprintf("%s %s", w.Action, words.Number(treated))
	if w.Total != nil && *w.Total > 0 {
		text = fmt.Sprintf("%s %s %s of %s", w.Action, output.Bar(treated, *w.Total), words.Number(treated),
			words.Number(*w.Total))
	}
	if w.Failed > 0 {
		text += fmt.Sprintf(", %s failed", words.Number(w.Failed))
	}
	if w.WaitingFor != "" {
		text += ", waits: " + output.Printable(w.WaitingFor)
	}
	if w.ETAAt.After(now) {
		text += ", ends in " + output.Span(w.ETAAt.Sub(now))
	}
	return text
}
