package dispatcher

import (
	"errors"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// maxFailed bounds the failed dead letters in a result.
const maxFailed = 100

// A bulkTask is an operation on a selection of dead letters, with its result.
type bulkTask struct {
	store.BulkResult
	selection store.Selection
	// refuse, if set, returns an error for a dead letter that must not be changed.
	refuse func(*job.Job) error
	// do executes the operation on jobs and returns an error for each. It may narrow the walk.
	do func(jobs []job.Job, walk *store.Filter) []error
}

// needsJobs reports whether the task needs more of a dead letter than its id.
func (t *bulkTask) needsJobs() bool { return t.selection.DryRun || t.refuse != nil }

// apply executes the task on jobs without an error in errs, and records all of them.
func (t *bulkTask) apply(jobs []job.Job, errs []error, walk *store.Filter) {
	fit, at := make([]job.Job, 0, len(jobs)), make([]int, 0, len(jobs))
	for i := range jobs {
		if errs[i] == nil && t.refuse != nil {
			errs[i] = t.refuse(&jobs[i])
		}
		if errs[i] == nil {
			fit, at = append(fit, jobs[i]), append(at, i)
		}
	}
	if !t.selection.DryRun && len(fit) > 0 {
		for k, err := range t.do(fit, walk) {
			errs[at[k]] = err
		}
	}
	for i, err := range errs {
		t.record(jobs[i].ID, err)
	}
}

// record counts a dead letter, and lists it if it failed.
func (t *bulkTask) record(id string, err error) {
	if err == nil {
		t.Matched++
		if !t.selection.DryRun {
			t.Done++
		}
		return
	}
	if state, ok := errors.AsType[*store.StateError](err); !errors.Is(err, store.ErrNotFound) && (!ok || state.State == job.Dead) {
		t.Matched++
	}
	if len(t.Failed) < maxFailed {
		t.Failed = append(t.Failed, store.BulkFailure{ID: id, Err: err})
	}
}
