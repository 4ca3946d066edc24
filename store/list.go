package store

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Bounds of one List.
const (
	// MaxListLimit is the largest Filter.Limit.
	MaxListLimit = 500
	// MaxScanLimit is the largest Filter.ScanLimit.
	MaxScanLimit = 10_000
	// ListTime is the Filter.Within of a zero one.
	ListTime = time.Second
)

// Filter selects jobs that match all of its fields, and a page of their list. Fields that are zero match every job.
//
// The list has the unfinished jobs first: topic by topic and lane by lane in the order of their names (compared by
// bytes), within a lane by due time. Then come the ended jobs of all topics, by their end. Times are in whole
// milliseconds, newest first unless Oldest is set. Engines choose the order of the jobs of one lane that are due, or of
// those that ended, in the same millisecond, and keep to it from page to page.
type Filter struct {
	Namespace string // required
	Topic     string
	Lane      string // without a Topic: the lanes of this name in all topics
	// Kind is job.KindRegistered for the jobs in topics that are not reserved, or the Spec.Kind of jobs in reserved
	// topics.
	Kind   string
	States []job.State
	Labels []Label       // a job must have all of them
	Reason policy.Reason // of a dead or cancelled job
	Status int           // of the last answer
	// ErrorClass is why there was no complete answer: a class, AnyError or UnknownAnswer.
	ErrorClass policy.ErrorClass
	IDPrefix   string
	Created    TimeRange
	Due        TimeRange
	Ended      TimeRange // of ended jobs, and no others
	// Oldest reverses the times in the order of the list: the oldest come first.
	Oldest bool

	// After is the place in the list after which the page begins: the Reached of the page before, with the same fields
	// above.
	After Position
	// Limit is the maximum number of jobs in the page, 1 to MaxListLimit.
	Limit int
	// ScanLimit is the number of jobs after which the page ends although it is not full: the budget of a filter that
	// few jobs match. 1 to MaxScanLimit; 0: MaxScanLimit. The page may have looked at up to 1,000 more, or at fewer if
	// these are in many lanes.
	ScanLimit int
	// Within is the time after which package dispatcher ends the page although it is not full; zero: ListTime. Engines
	// ignore it.
	Within time.Duration `json:"-"` // cursors are of any time
}

// The values of Filter.ErrorClass beside the classes.
const (
	AnyError policy.ErrorClass = "any" // the job has a class
	// UnknownAnswer: the job has neither a class nor a status, as without an attempt.
	UnknownAnswer policy.ErrorClass = "unknown"
)

// selectsAnswer reports whether jobs with an answer may match.
func (f *Filter) selectsAnswer(p *job.Progress) bool {
	switch f.ErrorClass {
	case "":
		return f.Status == 0 || f.Status == p.Status
	case AnyError:
		return f.Status == 0 && p.ErrorClass != ""
	case UnknownAnswer:
		return f.Status == 0 && p.Answer() == ""
	default:
		return f.Status == 0 && f.ErrorClass == p.ErrorClass
	}
}

// Label is a label of a job.
type Label struct {
	Key   string
	Value string
}

// TimeRange selects times. Zero times are no bounds.
type TimeRange struct {
	After  time.Time // inclusive
	Before time.Time // exclusive
}

// IsZero reports whether the range selects all times.
func (r TimeRange) IsZero() bool { return r.After.IsZero() && r.Before.IsZero() }

// Contains reports whether the range selects t. The zero time, which jobs have that have not ended, is only in a range
// without bounds.
func (r TimeRange) Contains(t time.Time) bool {
	if r.IsZero() {
		return true
	}
	return !t.IsZero() && !t.Before(r.After) && (r.Before.IsZero() || t.Before(r.Before))
}

// SelectsTopic reports whether jobs of a topic may match.
func (f *Filter) SelectsTopic(topic string) bool {
	return (f.Topic == "" || f.Topic == topic) &&
		(f.Kind == "" || job.IsReserved(topic) == (f.Kind != job.KindRegistered))
}

// NextTopic returns the first name, from a name on, that a topic whose jobs may match can have; ok: there is one.
// Reserved topics are beside each other in the order of names.
func (f *Filter) NextTopic(from string) (name string, ok bool) {
	const reserved, behindReserved = "_", "`"
	switch {
	case f.Topic != "":
		return f.Topic, from <= f.Topic && f.SelectsTopic(f.Topic)
	case f.Kind == "" || f.SelectsTopic(from):
		return from, true
	case f.Kind == job.KindRegistered:
		return behindReserved, true
	default:
		return reserved, from < reserved
	}
}

// SelectsState reports whether jobs in a state may match.
func (f *Filter) SelectsState(state job.State) bool {
	switch {
	case len(f.States) > 0 && !slices.Contains(f.States, state):
		return false
	case f.Reason != "" && state != job.Dead && state != job.Cancelled:
		return false
	}
	return f.Ended.IsZero() || state.Ended()
}

// SelectsUnfinished reports whether jobs that have not ended may match.
func (f *Filter) SelectsUnfinished() bool {
	return f.SelectsState(job.Scheduled) || f.SelectsState(job.Ready) || f.SelectsState(job.Running)
}

// SelectsEnded reports whether jobs that have ended may match.
func (f *Filter) SelectsEnded() bool {
	return f.SelectsState(job.Delivered) || f.SelectsState(job.Dead) || f.SelectsState(job.Cancelled)
}

// Matches reports whether a job matches the filter, apart from its namespace.
func (f *Filter) Matches(j *job.Job) bool { return f.MatchesProgress(j) && f.MatchesSpec(j) }

// MatchesProgress is the part of Matches that does not need the labels and the kind of the job.
func (f *Filter) MatchesProgress(j *job.Job) bool {
	return f.SelectsTopic(j.Topic) && f.SelectsState(j.State) &&
		(f.Lane == "" || f.Lane == j.Lane) &&
		(f.Reason == "" || f.Reason == j.Reason) &&
		f.selectsAnswer(&j.Progress) &&
		strings.HasPrefix(j.ID, f.IDPrefix) &&
		f.Created.Contains(j.CreatedAt) && f.Due.Contains(j.DueAt) && f.Ended.Contains(j.FinishedAt)
}

// MatchesSpec is the part of Matches that needs the labels and the kind of the job.
func (f *Filter) MatchesSpec(j *job.Job) bool {
	if f.Kind != "" && f.Kind != job.KindRegistered && f.Kind != j.Kind {
		return false
	}
	return !slices.ContainsFunc(f.Labels, func(l Label) bool {
		value, ok := j.Labels[l.Key]
		return !ok || value != l.Value
	})
}

// Position is a place in the list of a filter: that of a job, which need not exist, or, without a Tie, before the jobs
// of a time. The zero Position is before the first job.
type Position struct {
	// Ended is set in the part of the ended jobs, which has no Topic and Lane.
	Ended bool   `json:"e,omitempty"`
	Topic string `json:"t,omitempty"`
	Lane  string `json:"l,omitempty"`
	// At is the due time, or the end, in Unix milliseconds; 0: before the first job of the lane, or of the ended jobs,
	// in either order.
	At int64 `json:"m,omitempty"`
	// Shard is the shard of an ended job: of jobs that ended in one millisecond, those of lower shards come first.
	// Package router sets and reads it.
	Shard int `json:"s,omitempty"`
	// Tie is the engine's name of the place among the jobs of one shard, lane and time; empty: before the first of
	// them, in either order.
	Tie string `json:"n,omitempty"`
}

// PositionOf returns the position of a job with a tie.
func PositionOf(j *job.Job, tie string) Position {
	if j.State.Ended() {
		return Position{Ended: true, At: j.FinishedAt.UnixMilli(), Tie: tie}
	}
	return Position{Topic: j.Topic, Lane: j.Lane, At: j.DueAt.UnixMilli(), Tie: tie}
}

// Compare orders two positions in the list of a filter, apart from their ties, which only engines can compare.
func (p Position) Compare(o Position, oldest bool) int {
	if p.Ended != o.Ended {
		if o.Ended {
			return -1
		}
		return 1
	}
	at := cmp.Compare(p.At, o.At)
	if !oldest && p.At != 0 && o.At != 0 {
		at = -at
	}
	if p.Ended {
		return cmp.Or(at, cmp.Compare(p.Shard, o.Shard))
	}
	return cmp.Or(cmp.Compare(p.Topic, o.Topic), cmp.Compare(p.Lane, o.Lane), at)
}

// Page is a part of a list.
type Page struct {
	// Jobs are in the order of the list, without bodies and histories. There are Limit of them if More is set, unless
	// as many jobs were looked at as ScanLimit says.
	Jobs []job.Job
	// Ties has the Tie of the Position of each job.
	Ties []string
	// Reached is the place up to which the shard has looked: no matching job before it is missing from this page and
	// those before. If More is set, it is after Filter.After.
	Reached Position
	// More is set unless the shard has looked at all jobs after Reached. They may all fail to match.
	More bool
	// Scanned is the number of jobs that were looked at, matching or not.
	Scanned int
}
