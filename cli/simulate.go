package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/cli/simulate"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
)

// simulateCommand is ringback simulate.
type simulateCommand struct {
	Ladder    []string `placeholder:"DURATION,…" help:"Waits after the first, second, … failed attempt. Default: the built-in ladder."`
	Retries   *int     `placeholder:"N" help:"Requests after the first one. Default: the length of the ladder."`
	Jitter    float64  `default:"-1" placeholder:"SHARE" help:"Share by which waits may be longer, 0 to 1. Default: 0.1."`
	MaxAge    string   `placeholder:"DURATION" help:"Age at which the job is dead. Default: the span of the ladder and 24h."`
	ExpiresIn string   `placeholder:"DURATION" help:"Expiry of the job, from its registration."`
	Took      string   `default:"0s" placeholder:"DURATION" help:"Duration of each attempt, such as the timeout (default 0s)."`
	Start     string   `placeholder:"TIME" help:"Time of the first attempt. Default: now."`
	formatFlags
}

// Run prints when the attempts are made if all fail with status 500.
func (c *simulateCommand) Run(e *Environment) error {
	p, err := c.printer(e)
	if err != nil {
		return err
	}
	terms, took, expires, err := c.terms()
	if err != nil {
		return &UsageError{err}
	}
	start := time.Now()
	if c.Start != "" {
		if start, err = time.Parse(time.RFC3339, c.Start); err != nil {
			return usage("--start: %q is not a time such as 2030-01-31T08:00:00Z", c.Start)
		}
	}
	list := p.List(views["planned"])
	for _, attempt := range simulate.Attempts(terms, took, expires) {
		raw, err := json.Marshal(attempt.Row(start))
		if err != nil {
			return err
		}
		if err := list.Add(raw); err != nil {
			return err
		}
	}
	return list.Close()
}

func parseDuration(text string) (time.Duration, error) { return units.ParseDuration(text) }

// terms returns the terms of the flags.
func (c *simulateCommand) terms() (terms policy.Terms, took, expires time.Duration, err error) {
	var errs []error
	duration := func(name, text string) (d time.Duration) {
		if text == "" {
			return 0
		}
		d, err := parseDuration(text)
		if err != nil || d < 0 {
			errs = append(errs, fmt.Errorf("--%s: %q is not a duration such as 90s or 1h30m", name, text))
		}
		return d
	}
	var topic policy.Topic
	for _, text := range c.Ladder {
		rung := duration("ladder", text)
		if rung < policy.MinRung || rung > policy.MaxRung {
			errs = append(errs, fmt.Errorf("--ladder: %s is not between %s and 30d", text, policy.MinRung))
		}
		topic.Ladder = append(topic.Ladder, rung)
	}
	if len(topic.Ladder) > policy.MaxRungs {
		errs = append(errs, fmt.Errorf("--ladder: has more than %d rungs", policy.MaxRungs))
	}
	if c.Retries != nil && (*c.Retries < 0 || *c.Retries > 1000) {
		errs = append(errs, errors.New("--retries: is not between 0 and 1000"))
	}
	topic.Retries = c.Retries
	if c.Jitter > 1 {
		errs = append(errs, errors.New("--jitter: is not between 0 and 1"))
	}
	if c.Jitter >= 0 {
		topic.Jitter = &c.Jitter
	}
	topic.MaxAge = duration("max-age", c.MaxAge)
	expires, took = duration("expires-in", c.ExpiresIn), duration("took", c.Took)
	builtin := policy.Builtin()
	if topic.Ladder != nil && topic.Retries == nil {
		topic.Retries = new(len(topic.Ladder))
	}
	return topic.WithDefaults(builtin).Terms(policy.Terms{}), took, expires, errors.Join(errs...)
}
