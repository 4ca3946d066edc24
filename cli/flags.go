package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
)

// ladderFlags are the flags of a simulation.
type ladderFlags struct {
	policyFlags
	// Expiry of the job, from its registration.
	ExpiresIn string `placeholder:"DURATION"`
	// Duration of each attempt, such as the timeout (default 0s).
	Took string `default:"0s" placeholder:"DURATION"`
	// Time of the first attempt. Default: now.
	Start string `placeholder:"TIME"`
}

// Attempts returns the attempts of the flags, and the time of the first one.
func (f *ladderFlags) Attempts() (all []simulatedAttempt, start time.Time, err error) {
	terms, took, expires, err := f.terms()
	if err == nil {
		start, err = timeOr(f.Start, "--start")
	}
	if err != nil {
		return nil, start, err
	}
	return simulateAttempts(terms, took, expires), start, nil
}

// terms returns the terms of the flags.
func (f *ladderFlags) terms() (terms policy.Terms, took, expires time.Duration, err error) {
	var errs []error
	duration := func(name, text string) (d time.Duration) {
		if text == "" {
			return 0
		}
		d, err := units.ParseDuration(text)
		if err != nil || d < 0 {
			errs = append(errs, fmt.Errorf("--%s: %q is not a duration such as 90s or 1h30m", name, text))
		}
		return d
	}
	var topic policy.Topic
	for _, text := range f.Ladder {
		rung := duration("ladder", text)
		if rung < policy.MinRung || rung > policy.MaxRung {
			errs = append(errs, fmt.Errorf("--ladder: %s is not between %s and 30d", text, policy.MinRung))
		}
		topic.Ladder = append(topic.Ladder, rung)
	}
	if len(topic.Ladder) > policy.MaxRungs {
		errs = append(errs, fmt.Errorf("--ladder: has more than %d rungs", policy.MaxRungs))
	}
	if f.Retries != nil && (*f.Retries < 0 || *f.Retries > 1000) {
		errs = append(errs, errors.New("--retries: is not between 0 and 1000"))
	}
	topic.Retries = f.Retries
	if f.Jitter != nil && (*f.Jitter < 0 || *f.Jitter > 1) {
		errs = append(errs, errors.New("--jitter: is not between 0 and 1"))
	}
	topic.Jitter = f.Jitter
	topic.MaxAge = duration("max-age", f.MaxAge)
	expires, took = duration("expires-in", f.ExpiresIn), duration("took", f.Took)
	builtin := policy.Builtin()
	if topic.Ladder != nil && topic.Retries == nil {
		topic.Retries = new(len(topic.Ladder))
	}
	return topic.WithDefaults(builtin).Terms(policy.Terms{}), took, expires, errors.Join(errs...)
}
