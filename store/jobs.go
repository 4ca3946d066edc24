package store

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
)

// Jobs is the part of a shard that registers, reads and changes jobs on request.
type Jobs interface {
	// Insert registers up to MaxBatch jobs and returns one result for each, in order. A known id changes nothing: the
	// outcome is Existing when the fingerprint equals the registered one and the job is not cancelled, else Conflict.
	// Two jobs of one call are inserted in order. A job that is due now becomes ready, and its queue is notified, when
	// no job of the queue is due before it. When the queue's next moment comes before the head of the agenda,
	// WaitAgenda returns.
	Insert(ctx context.Context, token Token, jobs []NewJob) ([]InsertResult, error)

	// Get reads a job with its history. ErrNotFound.
	Get(ctx context.Context, ref job.Ref) (job.Job, error)

	// Known returns for each of up to MaxBatch ids what the shard knows of it.
	Known(ctx context.Context, refs []job.Ref) ([]IDStatus, error)

	// List reads one page of the jobs that a filter selects. Every job that matches from the first page to the last,
	// and whose place in the list does not change, is on exactly one page; other jobs may be missing or on several.
	// Jobs that cannot be decoded are logged and left out. ErrCursor when filter.After has a Tie that the engine cannot
	// read.
	List(ctx context.Context, filter Filter) (Page, error)

	// Replace changes a scheduled or ready job and adds an event to its history. ErrNotFound; ErrVersion when IfVersion
	// is not the job's version; a StateError in any other state; ErrExpired when the due time or the expiry moves so
	// that the job expires before it is due.
	Replace(ctx context.Context, token Token, ref job.Ref, replacement Replacement) (job.Job, error)

	// Cancel ends an unfinished job, adds an event, and returns the job. A running job is marked instead
	// (CancelRequested): a settlement with the verdict Delivered still delivers it; any other settlement, or the expiry
	// of the lease, cancels it. Cancelling a cancelled or marked job changes nothing. ErrNotFound; a StateError when
	// the job is delivered or dead.
	Cancel(ctx context.Context, token Token, ref job.Ref, cancellation Cancellation) (job.Job, error)

	// Revive makes up to MaxBatch ended jobs due again and returns one result for each, in order. A revived job has a
	// fresh budget: FailedAttempts and ConsecutiveLost restart at 0, Attempts continues. The errors are ErrNotFound;
	// ErrVersion when IfVersion is not the job's version; a StateError when the job is unfinished or not in the state
	// From; and ErrExpired when the job would expire before it is due. Two revivals of one job in a call are applied in
	// order.
	Revive(ctx context.Context, token Token, items []Revival) ([]ReviveResult, error)

	// Purge removes up to MaxBatch ended jobs and returns one error for each, in order: nil; ErrNotFound; ErrVersion
	// when IfVersion is not the job's version; or a StateError when the job is unfinished or not in the state From. An
	// id chosen by a client stays known as long as without the purge.
	Purge(ctx context.Context, token Token, items []Removal) ([]error, error)
}

// IDStatus is what a shard knows of an id. The zero value: nothing.
type IDStatus struct {
	// Exists: there is a job of the id.
	Exists bool
	// Ended is the state in which the job has ended, also if it was removed since; empty: it has not.
	Ended job.State
}

// Known reports whether an Insert would find the id known.
func (s IDStatus) Known() bool { return s != IDStatus{} }

// Unfinished reports whether the job is scheduled, ready or running.
func (s IDStatus) Unfinished() bool { return s.Exists && s.Ended == "" }

// Replacement is a change to a scheduled or ready job: to its specification, to its times, or to both.
type Replacement struct {
	// Kind is the kind of the event: job.EventEdited or job.EventRun. Fields are the names of the fields that an edit
	// changes, at most job.MaxFields. Actor is the name of the client, at most job.MaxActor bytes.
	Kind   job.EventKind
	Fields []string
	Actor  string
	// IfVersion is the version that the job must have: that of the job from which Spec was made. Zero means any version
	// and is for replacements without a Spec.
	IfVersion int64
	// Spec is the new specification, with the job's id and queue, which never change. Nil: unchanged.
	Spec *job.Spec
	// Due is the new due time; the past means now. Before the first attempt of a generation FirstDueAt moves along.
	// Nil: unchanged.
	Due *job.TimeOrDelay
	// Expiry is the new expiry; the zero TimeOrDelay removes it. Nil: unchanged.
	Expiry *job.TimeOrDelay
}

// MovesTime reports whether the due time or the expiry moves.
func (r Replacement) MovesTime() bool { return r.Due != nil || r.Expiry != nil }

// Apply replaces the specification of a stored job, but for what never changes: its id, its queue and the URL of
// attempts that have none.
func (r Replacement) Apply(s *job.Spec) {
	if r.Spec == nil {
		return
	}
	before := *s
	*s = *r.Spec
	s.ID, s.Queue, s.CreatedBy, s.URL, s.FirstURL = before.ID, before.Queue, before.CreatedBy, before.URL,
		before.FirstURL
	s.SetURL(r.Spec.URL)
}

// Event returns the event of the replacement.
func (r Replacement) Event(at time.Time) job.Event {
	return job.Event{At: at, Kind: r.Kind, Fields: r.Fields, Actor: r.Actor}
}

// Cancellation describes a cancellation.
type Cancellation struct {
	// IfVersion is the version that the job must have, else ErrVersion; zero: any.
	IfVersion int64
	// Actor is the name of the client, at most job.MaxActor bytes; empty: unknown.
	Actor string
}

// Event returns the event of the cancellation.
func (c Cancellation) Event(at time.Time) job.Event {
	return job.Event{At: at, Kind: job.EventCancelled, Actor: c.Actor}
}

// Revival makes an ended job due again, as its next generation.
type Revival struct {
	Ref job.Ref
	// Delay and RunAt set the due time of the first attempt, as in job.New; RunAt is by the store's clock.
	Delay time.Duration
	RunAt time.Time
	// ExpiresIn is the time from now to a new expiry; zero: the expiry does not change.
	ExpiresIn time.Duration
	// URL replaces that of the job; empty: the URL does not change.
	URL string
	// Header replaces those of the job; empty: it has none; nil: they do not change.
	Header map[string][]string
	// From is the state that the job must have; empty: any state in which a job has ended.
	From job.State
	// IfVersion is the version that the job must have; zero: any.
	IfVersion int64
	// Actor is the name of the client, at most job.MaxActor bytes; empty: unknown.
	Actor string
}

// Event returns the event of the revival.
func (r *Revival) Event(at time.Time) job.Event {
	return job.Event{At: at, Kind: job.EventRevived, Actor: r.Actor}
}

// Removal removes an ended job.
type Removal struct {
	Ref job.Ref
	// From is the state that the job must have; empty: any state in which a job has ended.
	From job.State
	// IfVersion is the version that the job must have; zero: any.
	IfVersion int64
}

// ReviveResult is the result of one revival: the job, or an error. The results of a call contain bodies up to 8 MiB in
// total; jobs after that have none.
type ReviveResult struct {
	Job job.Job
	Err error
}
