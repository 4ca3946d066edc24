package dispatcher

import (
	"context"
	"time"

	"github.com/ringback/ringback/policy"
)

// Job is a job as its function gets it.
type Job struct {
	ID        string
	Namespace string
	Topic     string
	Lane      string
	// Attempt is the number of this attempt, from 1. RetriesLeft is the number of retries if it fails.
	Attempt     int
	RetriesLeft int
	// DueAt is when this attempt was due, by the store's clock.
	DueAt time.Time
	// Body and ContentType are as registered.
	Body        []byte
	ContentType string
	// Header and Labels are those of the job, secret headers in plain text. They must not be changed.
	Header map[string][]string
	Labels map[string]string
}

// HandlerFunc handles a job. It is called concurrently, and more than once for a job whose process died or was cut off
// from the store. It must return soon after ctx ends. Nil: the job is delivered.
type HandlerFunc func(ctx context.Context, j *Job) error

// RetryError is a failure after which the job is due again after a wait, instead of the ladder's. It costs a retry.
type RetryError struct {
	After time.Duration // rounded up to milliseconds, up to 30 days; zero and less: at once
	Err   error         // the cause; may be nil
}

// Error returns the cause, or else the wait that holds.
func (e *RetryError) Error() string {
	switch {
	case e == nil:
		return "retry"
	case e.Err == nil:
		return "retry after " + min(max(e.After, 0), policy.MaxRung).String()
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *RetryError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// DeadError is a failure after which the job is dead, whatever retries it has left.
type DeadError struct {
	Err error // the cause; may be nil
}

// Error returns that of the cause.
func (e *DeadError) Error() string {
	if e == nil || e.Err == nil {
		return "given up"
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *DeadError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}
