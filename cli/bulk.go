package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/cli/output"
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

// Run begins the work of the command's request.
func (c *bulk) Run(ctx context.Context, k *kong.Context, e *Environment) error {
	s, r, err := c.openRequest(e, k.Selected())
	if err != nil {
		return err
	}
	if r.Body == nil {
		r.Body = requestFields{}
	}
	return c.start(ctx, s, r, k.Selected().Name)
}

// Run begins the work: the selection is a member of the request, and so is the change.
func (c *startWork) Run(ctx context.Context, k *kong.Context, e *Environment) error {
	s, r, err := c.openRequest(e, k.Selected())
	if err != nil {
		return err
	}
	order, change := requestFields{}, requestFields{}
	for _, name := range []string{"action", "rate", "lane_rate"} {
		if r.Body[name] != nil {
			order[name] = r.Body[name]
			delete(r.Body, name)
		}
	}
	for _, text := range c.Set {
		if err := change.Assign(text); err != nil {
			return err
		}
	}
	order["where"] = r.Body.Encode()
	if len(change) > 0 {
		order["change"] = change.Encode()
	}
	r.Body = order
	return c.start(ctx, s, r, c.Action)
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
	var count struct {
		Matched int64
		Exact   bool
		Groups  []struct {
			Topic, Reason string
			Count         int64
		}
	}
	if err := json.Unmarshal(answer, &count); err != nil {
		return false, fmt.Errorf("the answer is not a count: %w", err)
	}
	if count.Matched == 0 && count.Exact {
		s.say("no job matches: nothing is changed")
		return false, nil
	}
	for _, g := range count.Groups {
		s.say("%12s  %s", output.Number(g.Count), output.Printable(strings.TrimSpace(g.Topic+"  "+g.Reason)))
	}
	atLeast := ""
	if !count.Exact {
		atLeast = "at least "
	}
	question := fmt.Sprintf("%s %s%s?", strings.ToUpper(action[:1])+action[1:], atLeast, output.Jobs(count.Matched))
	return true, s.confirm(ctx, question, false)
}

// waitWork is ringback work wait.
type waitWork struct {
	// Id of the work.
	ID string `arg:""`
	connection
}

// Run shows the progress of the work.
func (c *waitWork) Run(ctx context.Context, e *Environment) error {
	s, err := c.open(e)
	if err != nil {
		return err
	}
	answer, err := s.do(ctx, &apiRequest{Method: http.MethodGet, Path: "/v1/work/" + url.PathEscape(c.ID)})
	if err != nil {
		return err
	}
	return s.follow(ctx, answer)
}

// The pauses between two looks while a server is away.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// workPolls are the pauses between two looks at work: short at first, so that little work ends soon.
var workPolls = []time.Duration{
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second,
}

// follow shows the progress of work until it has ended. A server that is away for a while does not end it.
func (s *session) follow(ctx context.Context, answer json.RawMessage) error {
	bar := isTerminal(s.Stderr)
	var p output.WorkProgress
	for poll := 0; ; poll++ {
		if err := json.Unmarshal(answer, &p); err != nil || p.ID == "" {
			return errors.Join(errors.New("the answer is not work"), err)
		}
		if p.State != "running" {
			break
		}
		if bar {
			fmt.Fprintf(s.Stderr, "\r\x1b[K%s", p.Bar(time.Now()))
		}
		next, err := s.nextLook(ctx, p.ID, workPolls[min(poll, len(workPolls)-1)])
		if err != nil {
			if bar {
				fmt.Fprintln(s.Stderr)
			}
			s.say("the work goes on in the server: ringback work wait %s shows it, ringback work stop %s stops it",
				p.ID, p.ID)
			return err
		}
		answer = next
	}
	if bar {
		fmt.Fprint(s.Stderr, "\r\x1b[K")
	}
	return s.workEnded(answer, &p)
}

// nextLook waits and reads the work again, until the server answers.
func (s *session) nextLook(ctx context.Context, id string, pause time.Duration) (json.RawMessage, error) {
	for {
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
		answer, err := s.do(ctx, &apiRequest{Method: http.MethodGet, Path: "/v1/work/" + url.PathEscape(id)})
		if err == nil || ctx.Err() != nil || codeOf(err) != Unavailable {
			return answer, err
		}
		pause = min(2*pause, longestPause) + rand.N(firstPause)
	}
}

// workEnded prints work that has ended, and returns an error if it did not do all.
func (s *session) workEnded(answer json.RawMessage, p *output.WorkProgress) error {
	if s.out.ForPeople() {
		if _, err := fmt.Fprintln(s.Stdout, output.Printable(p.Summary())); err != nil {
			return err
		}
		for _, f := range p.Failures {
			s.say("  %s %s", output.Printable(f.ID), output.Printable(f.Reason))
		}
	} else if err := s.out.One(answer); err != nil {
		return err
	}
	if p.State != "done" || p.Failed > 0 {
		return &ExitError{Code: failed}
	}
	return nil
}
