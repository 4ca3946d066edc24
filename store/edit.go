package store

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Edit is a change to a job. Nil fields stay as they are.
type Edit struct {
	// Kind is what the record says: job.KindEdited or job.KindRun.
	Kind job.AttemptKind
	// IfVersion, unless zero, is the version that the job must have.
	IfVersion int64
	// Delay and RunAt move the due time, as in job.New; at most one of them. Before a round's first attempt, Since moves with it.
	Delay *time.Duration
	RunAt *time.Time
	// ExpiresIn and ExpiresAt move the expiry; a zero ExpiresAt removes it.
	ExpiresIn *time.Duration
	ExpiresAt *time.Time

	URL     *string
	Header  map[string][]string
	Body    *Body
	Labels  map[string]string
	Ladder  policy.Ladder
	Retries *int
	Timeout *time.Duration
}

// MovesTime reports whether the edit moves the due time or the expiry.
func (e Edit) MovesTime() bool {
	return e.Delay != nil || e.RunAt != nil || e.ExpiresIn != nil || e.ExpiresAt != nil
}

// Body replaces a job's body.
type Body struct {
	Kind        job.BodyKind
	ContentType string
	Bytes       []byte
}

// Spec changes what the edit says of a job's Spec; due time and expiry are the engine's to change.
func (e Edit) Spec(s *job.Spec) {
	if e.URL != nil {
		s.URL = *e.URL
	}
	if e.Header != nil {
		s.Header = e.Header
	}
	if e.Body != nil {
		s.BodyKind, s.ContentType, s.Body = e.Body.Kind, e.Body.ContentType, e.Body.Bytes
	}
	if e.Labels != nil {
		s.Labels = e.Labels
	}
	if e.Ladder != nil {
		s.Ladder = e.Ladder
	}
	if e.Retries != nil {
		s.Retries = e.Retries
	}
	if e.Timeout != nil {
		s.Timeout = *e.Timeout
	}
}

// Revival sends an ended job on another round.
type Revival struct {
	Ref job.Ref
	// Delay and RunAt say when the round's first attempt is due, as in job.New: RunAt is by the store's clock.
	Delay time.Duration
	RunAt time.Time
	// ExpiresIn is a new expiry, from now on; zero: that of the job stays.
	ExpiresIn time.Duration
	// URL replaces the job's; empty: it stays.
	URL string
	// From is the state that the job must be in; empty: any in which a job has ended.
	From job.State
}

// ReviveResult is the result of one revival: the job, unless Err says why it was not revived. Bodies are answered up to 8 MiB in
// all; what comes after has none.
type ReviveResult struct {
	Job job.Job
	Err error
}
