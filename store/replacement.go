package store

import "github.com/ringback/ringback/job"

// Replacement is a change to a scheduled or ready job: to its specification, to its times, or to both.
type Replacement struct {
	// Kind is the kind of the entry in the history: job.KindEdited or job.KindRun.
	Kind job.AttemptKind
	// IfVersion is the version that the job must have: that of the job from which Spec was made. Zero means any version
	// and is for replacements without a Spec.
	IfVersion int64
	// Spec is the new specification, with the job's id and queue, which never change. Nil: unchanged.
	Spec *job.Spec
	// Due is the new due time; the past means now. Before the first attempt of a generation FirstDueAt moves along. Nil:
	// unchanged.
	Due *job.Moment
	// Expiry is the new expiry; the zero Moment removes it. Nil: unchanged.
	Expiry *job.Moment
}

// MovesTime reports whether the due time or the expiry moves.
func (r Replacement) MovesTime() bool { return r.Due != nil || r.Expiry != nil }

// Apply replaces the specification of a stored job, but for its id and queue.
func (r Replacement) Apply(s *job.Spec) {
	if r.Spec != nil {
		id, queue := s.ID, s.Queue
		*s = *r.Spec
		s.ID, s.Queue = id, queue
	}
}
