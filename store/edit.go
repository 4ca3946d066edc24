package store

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Edit is a change to a job. Nil fields do not change.
type Edit struct {
	// Kind is that of the entry in the history: job.KindEdited or job.KindRun.
	Kind job.AttemptKind
	// IfVersion is the version that the job must have; zero: any.
	IfVersion int64
	// Delay and RunAt move the due time, as in job.New; at most one of them may be set. Before the first attempt of a
	// generation FirstDueAt moves along.
	Delay *time.Duration
	RunAt *time.Time
	// ExpiresIn and ExpiresAt move the expiry; at most one of them may be set. A zero ExpiresAt removes the expiry.
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

// Spec applies the edit to s, except for due time and expiry, which engines apply.
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
