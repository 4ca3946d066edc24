package dispatcher

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// answerReserve is the time before a caller's deadline at which bulk work stops.
const answerReserve = 5 * time.Second

// PurgeDead deletes dead letters.
func (d *Dispatcher) PurgeDead(ctx context.Context, which store.Selection) (store.BulkResult, error) {
	t := bulkTask{selection: which, do: func(jobs []job.Job, _ *store.Filter) []error {
		items := make([]store.Removal, len(jobs))
		for i, j := range jobs {
			items[i] = store.Removal{Ref: j.Ref(), From: job.Dead}
		}
		return d.store.Purge(ctx, items)
	}}
	err := d.run(ctx, &t)
	return t.BulkResult, err
}

// run executes a task in batches until it is done or the context's deadline is near.
func (d *Dispatcher) run(ctx context.Context, t *bulkTask) error {
	if len(t.selection.IDs) > 0 {
		return d.runByID(ctx, t)
	}
	filter := t.selection.Filter
	filter.States, filter.Oldest, filter.After, filter.ScanLimit = []job.State{job.Dead}, true, store.Position{}, scanLimit
	step := batchSize(firstBatch)
	for more := true; more; {
		if t.More = isOutOfTime(ctx); t.More {
			return nil
		}
		filter.Limit = int(step)
		page, err := d.store.List(ctx, filter)
		if err != nil {
			return err
		}
		step.adapt(d.sampleBodies(ctx, page.Jobs))
		for part := range slices.Chunk(page.Jobs, int(step)) {
			t.apply(part, make([]error, len(part)), &filter)
		}
		filter.After, more = page.Reached, page.More
	}
	return nil
}

// runByID executes a task on dead letters selected by id. It reads them first if the task needs more than the id.
func (d *Dispatcher) runByID(ctx context.Context, t *bulkTask) error {
	step := batchSize(firstBatch)
	for ids := t.selection.IDs; len(ids) > 0; {
		if t.More = isOutOfTime(ctx); t.More {
			return nil
		}
		n := min(int(step), len(ids))
		if t.needsJobs() {
			n = min(n, readAtOnce)
		}
		jobs, errs := jobsByID(t.selection.Filter.Namespace, ids[:n]), make([]error, n)
		ids = ids[n:]
		if !t.needsJobs() {
			step.adapt(d.sampleBodies(ctx, jobs))
			for part := range slices.Chunk(jobs, int(step)) {
				t.apply(part, errs[:len(part)], &store.Filter{})
			}
			continue
		}
		for i, found := range d.readJobs(ctx, jobs) {
			switch {
			case found.err != nil && t.selection.DryRun && (ctx.Err() != nil || errors.Is(found.err, store.ErrUnavailable)):
				return found.err
			case found.err != nil:
				errs[i] = found.err
			case found.State != job.Dead:
				errs[i] = &store.StateError{State: found.State}
			default:
				jobs[i] = found.Job
			}
		}
		step.adapt(bodyBytes(jobs), n)
		t.apply(jobs, errs, &store.Filter{})
	}
	return nil
}

// jobsByID returns jobs with only their ids set.
func jobsByID(namespace string, ids []string) []job.Job {
	jobs := make([]job.Job, len(ids))
	for i, id := range ids {
		jobs[i].Namespace, jobs[i].ID = namespace, id
	}
	return jobs
}

// isOutOfTime reports whether the context's deadline is near.
func isOutOfTime(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < answerReserve
}
