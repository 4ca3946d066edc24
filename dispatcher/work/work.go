// Package work is bulk work: the revival or the purge of all jobs that a filter selects, or of a list of ids. A Work is an
// internal job whose body is its order and its progress. Each step executes the plan that the step before has stored, of up
// to 500 jobs with the version of each, and stores the next plan. So it survives crashes, may be stopped, and treats each
// job once: one whose version is another by now is counted as done if its history names this work, and skipped otherwise.
package work

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringback/ringback/dispatcher/pace"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Topic is the topic of the jobs that do bulk work.
const Topic = "_work"

// maxFailures bounds Counts.Failures.
const maxFailures = 100

// progress is the body of a Work's job.
type progress struct {
	store.WorkOrder
	store.WorkCounts
	// CreatedAt is that of the job. Jobs that died later do not match.
	CreatedAt time.Time       `json:"created_at"`
	After     store.Position  `json:"after"`  // of the filter's list
	Listed    bool            `json:"listed"` // all jobs are planned
	Plan      []target        `json:"plan,omitempty"`
	Size      int             `json:"size"` // of the next plan
	Pace      json.RawMessage `json:"pace,omitempty"`
	// Lead is the time by which a start is planned ahead. It doubles when steps come later than planned, and when a
	// call takes half of it.
	Lead time.Duration `json:"lead,omitempty"`
}

// target is a job of a plan.
type target struct {
	ID      string `json:"i"`
	Version int64  `json:"v"`
	Topic   string `json:"t,omitempty"` // with Lane: only under a rate
	Lane    string `json:"l,omitempty"`
	Start   int64  `json:"s,omitempty"` // under a rate: Unix milliseconds
}

func (p *progress) fail(count *int64, id, reason string) {
	*count++
	if len(p.Failures) < maxFailures {
		p.Failures = append(p.Failures, store.WorkFailure{ID: id, Reason: reason})
	}
}

func (p *progress) limited() bool {
	return p.Action == store.WorkRevive && (p.Rate.Limited() || p.LaneRate.Limited())
}

// pacer restores the pace, whose times count from CreatedAt.
func (p *progress) pacer() (*pace.Pacer, error) { return pace.Restore(p.Rate, p.LaneRate, p.Pace) }

// idPrefix begins the ids of the jobs.
const idPrefix = "rb:work:"

// decode returns the Work that a job does.
func decode(j *job.Job) (store.Work, error) {
	var p progress
	if err := json.Unmarshal(j.Body, &p); err != nil {
		return store.Work{}, fmt.Errorf("read work %s: %w", j.ID, err)
	}
	w := store.Work{ID: j.ID[len(idPrefix):], WorkOrder: p.WorkOrder, WorkCounts: p.WorkCounts, State: store.WorkRunning, CreatedAt: j.CreatedAt, EndedAt: j.FinishedAt, Listed: p.Listed}
	switch j.State {
	case job.Delivered:
		w.State = store.WorkDone
	case job.Dead, job.Cancelled:
		w.State = store.WorkStopped
	default:
	}
	return w, nil
}

// Jobs is what bulk work needs of the store.
type Jobs interface {
	Insert(ctx context.Context, jobs []store.NewJob) []store.RoutedResult
	Get(ctx context.Context, ref job.Ref) (job.Job, error)
	List(ctx context.Context, filter store.Filter) (store.Page, error)
	Cancel(ctx context.Context, ref job.Ref, cancellation store.Cancellation) (job.Job, error)
	Revive(ctx context.Context, items []store.Revival) []store.ReviveResult
	Purge(ctx context.Context, items []store.Removal) []error
	ShardOf(q job.Queue) int
}
