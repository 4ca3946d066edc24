package dispatcher

import (
	"errors"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A bulkTask is what is done to a selection of dead letters, and the count of what became of them.
type bulkTask struct {
	store.BulkResult
	selection store.Selection
	// refuse says why a letter must stay as it is; nil: none must.
	refuse func(*job.Job) error
	// do is done to some, and answers an error for each. It may narrow the walk.
	do func(jobs []job.Job, walk *store.Filter) []error
}

// needsJobs reports whether the task needs more of a letter than its id.
func (t *bulkTask) needsJobs() bool { return t.selection.DryRun || t.refuse != nil }

// apply works with some letters, but those that failed already, of which errs tells, and counts them all.
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

// record counts a letter, and names it where it failed.
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
