// Package schedules runs schedules: each tick of a schedule registers one job.
//
// A schedule is a document, which only requests change, and an internal job that never ends while the document exists.
// The job is due at the next tick. Its step reads the document, decides which ticks run, and its settlement writes
// their jobs to the outbox, stores the ticks as passed, and is due again at the next tick: all at once. So a crash at
// any moment repeats a step or nothing, and the ids of the jobs (job.TickID) make a repeated tick the same job. All
// times are the store's, so the clocks of processes do not matter. A schedule costs nothing between two ticks.
//
// The internal job is inserted before the document, so a document without an unfinished job has lost it, with the
// progress: to a failover of the store, or to the purge of a namespace. It gets a new job, which counts ticks from then
// on. What only the progress knew is not guessed, since no tick may run twice: a backfill ends, and a schedule with
// MaxRuns is paused.
//
// A change holds from its own time on, which is its revision: periods are the times between two changes of what decides
// about ticks. The document keeps those that no step has seen. A step makes the ticks of each, however late it comes.
//
// A change of the document makes the internal job due at once. If a process dies in between, the client has no answer
// yet and repeats the request; a change that is never repeated is seen by the next step, after a day at most.
package schedules

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Jobs is the part of the store's jobs that schedules use.
type Jobs interface {
	Insert(ctx context.Context, jobs []store.NewJob) []store.RoutedResult
	Get(ctx context.Context, ref job.Ref) (job.Job, error)
	GetIn(ctx context.Context, q job.Queue, ref job.Ref) (job.Job, error)
	StatusOnAny(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error)
	Replace(ctx context.Context, ref job.Ref, replacement store.Replacement) (job.Job, error)
	Cancel(ctx context.Context, ref job.Ref, cancellation store.Cancellation) (job.Job, error)
	Purge(ctx context.Context, items []store.Removal) []error
	TopicStats(ctx context.Context, filter store.StatsFilter) ([]store.TopicStats, error)
}

// Registrar checks and completes jobs as for a request that registers them. A refused job has a *job.InvalidError; of
// PrepareJobs also a *job.UndeclaredTopicError, or a *job.QuotaError. Other errors say nothing about the job.
type Registrar interface {
	// CheckJob checks the job of a schedule, and returns it with its secrets sealed for their origins. Its errors name
	// fields of the schedule, such as /job/url.
	CheckJob(ctx context.Context, n job.New) (job.Spec, error)
	// PrepareJobs completes the jobs of ticks. With an error it returns those before the first that was refused.
	PrepareJobs(ctx context.Context, jobs []job.New) ([]store.NewJob, error)
}

// Options configures a Service.
type Options struct {
	Settings  store.Settings
	Jobs      Jobs
	Registrar Registrar
	// Observe is called with the ticks that a step has treated, before they are recorded; nil: it is not.
	Observe func(outcome store.TickOutcome, ticks int64)
	Logger  *slog.Logger
}

// Service stores schedules, and makes their ticks by Step. It is safe for concurrent use.
type Service struct{ opts Options }

// New returns a Service.
func New(opts Options) *Service { return &Service{opts} }

// document is the stored form of a schedule.
type document struct {
	store.ScheduleSettings
	JobID     string // of the internal job
	Paused    bool
	Pause     policy.Pause
	CreatedAt time.Time
	CreatedBy string
	Updated   policy.Update
	Backfill  *store.Backfill // as it was ordered
	// Since is period.Since, a revision; zero: that of this document. Before are the periods that have ended, oldest
	// first, from progress.PassedSince at the last change on.
	Since  int64
	Before []period

	ordered bool   // Backfill is of the request in progress
	stored  period // as it is stored; Since is zero if none is
}

// progress is the body of the internal job.
type progress struct {
	// Timing identifies the ticks for programs that do not know periods. Empty: no step was made yet.
	Timing string `json:"timing"`
	// Passed is the time until which ticks have passed.
	Passed time.Time `json:"passed"`
	// PassedSince is period.Since of the period that Passed is in, and Seen that of the newest that a step has read.
	PassedSince int64 `json:"since,omitempty"`
	Seen        int64 `json:"seen,omitempty"`
	// Due are the ticks that a step has found to be due, unless all of them have passed.
	Due *dueTicks `json:"due,omitempty"`

	Counts store.ScheduleCounts `json:"counts"`
	Last   []store.ScheduleTick `json:"last,omitempty"`
	// LastJob and LastRunAt are the job of the last tick that ran, and when it was written to the outbox.
	LastJob   string    `json:"last_job,omitempty"`
	LastRunAt time.Time `json:"last_run_at"`
	// LastLateAt is when the job of a tick that ran late was last written to the outbox.
	LastLateAt time.Time `json:"last_late_at,omitzero"`
	// DeadInRow counts the jobs that died since one was delivered, while PauseAfterDead is set. The jobs of ticks until
	// DeadUntil do not count: after a pause, those from before it may still die.
	DeadInRow int       `json:"dead_in_row,omitempty"`
	DeadUntil time.Time `json:"dead_until,omitzero"`
	// Undecided are ticks before Last, in Unix seconds, whose jobs were unfinished: at most maxUndecided. Of more,
	// those of which nothing is known are not looked at, and then the newest.
	Undecided []int64   `json:"undecided,omitempty"`
	Backfill  *backfill `json:"backfill,omitempty"`
}

// decodeProgress reads the body of an internal job.
func decodeProgress(body []byte) (p progress, err error) {
	if err := json.Unmarshal(body, &p); err != nil {
		return p, fmt.Errorf("read the progress of a schedule: %w", err)
	}
	return p, nil
}

// dueTicks are ticks that are due, some of them perhaps late.
type dueTicks struct {
	MissedUntil time.Time `json:"missed_until"` // ticks until then are missed
	Until       time.Time `json:"until"`        // those after MissedUntil, until then, run
}

// backfill is the progress of a backfill.
type backfill struct {
	store.Backfill
	Passed time.Time `json:"passed"` // ticks until then were run
	DueAt  time.Time `json:"due_at"` // of the next ones
}

// record adds a tick that has passed.
func (p *progress) record(t store.ScheduleTick) {
	p.Passed = t.At
	switch t.Outcome {
	case store.TickRun:
		p.Counts.Run++
	case store.TickSkipped:
		p.Counts.Skipped++
	case store.TickMissed:
		p.Counts.Missed++
	case store.TickFailed:
		p.Counts.Failed++
	}
	if len(p.Last) >= store.MaxScheduleTicks {
		p.Last = append(p.Last[:0], p.Last[len(p.Last)-store.MaxScheduleTicks+1:]...)
	}
	p.Last = append(p.Last, t)
}

// timing returns progress.Timing.
func (d *document) timing() string {
	return fmt.Sprintf("%s|%s|%d|%d|%d", d.Cron, d.Timezone, d.Every, d.Offset, d.StartsAt.Unix())
}

// delayOf returns the time from the ticks of a schedule until their jobs are due.
func delayOf(ticks *schedule.Schedule, namespace, name string) time.Duration {
	return ticks.Jitter(namespace + "/" + name)
}

// keyOf returns the key of a schedule's document.
func keyOf(namespace, name string) store.DocumentKey {
	return store.DocumentKey{Kind: store.KindSchedule, Namespace: namespace, Name: name}
}

// queueOf returns the queue of a schedule's internal job: each has a lane, so that they do not wait for each other.
func queueOf(namespace, name string) job.Queue {
	return job.Queue{Namespace: namespace, Topic: job.ScheduleTopic, Lane: name}
}

// decode returns a stored schedule. store.ErrNotFound, store.ErrUnreadable.
func decode(doc *store.Document) (*document, error) {
	if doc.Revision == 0 {
		return nil, store.ErrNotFound
	}
	d := new(document)
	if err := json.Unmarshal(doc.Value, d); err != nil {
		return nil, fmt.Errorf("schedule %s: %w: %w", doc.Key.Name, store.ErrUnreadable, err)
	}
	d.Since = cmp.Or(d.Since, doc.Revision)
	if n := len(d.Before); n > 0 {
		d.Since = max(d.Since, d.Before[n-1].Since+1)
	}
	d.stored = d.period()
	return d, nil
}

// read reads a schedule. The document of an unknown or unreadable one has its revision.
func (s *Service) read(ctx context.Context, namespace, name string) (*document, store.Document, error) {
	key := keyOf(namespace, name)
	docs, err := s.opts.Settings.GetDocuments(ctx, []store.DocumentKey{key})
	if err != nil {
		return nil, store.Document{Key: key}, fmt.Errorf("read schedule %s: %w", name, err)
	}
	d, err := decode(&docs[0])
	return d, docs[0], err
}

// write stores a schedule under the revision of doc.
func (s *Service) write(ctx context.Context, doc store.Document, d *document) (store.Document, error) {
	if doc.Revision == 0 {
		doc.Revision = store.MustNotExist
	}
	value, err := json.Marshal(d)
	if err != nil {
		return doc, err
	}
	doc.Value, doc.Durability = value, nil
	written, err := s.opts.Settings.PutDocument(ctx, store.NewToken(), doc, policy.Limits{})
	if err != nil {
		return doc, fmt.Errorf("write schedule %s: %w", doc.Key.Name, err)
	}
	return written, nil
}
