package dispatcher

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

const (
	// maxFailed bounds the failed dead letters in a result.
	maxFailed = 100
	// answerReserve is the time before a caller's deadline at which bulk work stops.
	answerReserve = 5 * time.Second
)

// ReviveDead revives dead letters with a fresh retry budget. It returns a *job.InvalidError if the URL may not be called. A
// dead letter whose secret headers are for another origin than that of the URL is listed as failed.
func (d *Dispatcher) ReviveDead(ctx context.Context, which store.Selection, how store.RevivePlan) (store.BulkResult, error) {
	t := bulkTask{selection: which}
	if how.URL != "" {
		if err := d.checkURL("/url", how.URL); err != nil {
			return store.BulkResult{}, err
		}
		// A revival has no version, unlike an edit. If a dead letter is revived, edited and dead again between the check and
		// the revival, the check was of its former state. Its secrets are safe: the attempt compares the origins again.
		t.refuse = func(j *job.Job) error { return d.checkSecretsStayOnOrigin(j, how.URL, notForRevival) }
	}
	if which.DryRun && how.ExpiresIn == 0 {
		checkOrigin, now := t.refuse, time.Now()
		t.refuse = func(j *job.Job) error {
			if !j.ExpiresAt.IsZero() && j.ExpiresAt.Before(now) {
				return store.ErrExpired
			}
			if checkOrigin == nil {
				return nil
			}
			return checkOrigin(j)
		}
	}
	r := reviver{d: d, url: how.URL, expiresIn: how.ExpiresIn, pace: newPacer(how)}
	t.do = func(jobs []job.Job, walk *store.Filter) []error { return r.revive(ctx, jobs, walk) }
	err := d.run(ctx, &t)
	t.NextDelay = r.nextStart()
	return t.BulkResult, err
}

// reviver revives dead letters in batches at a pace.
type reviver struct {
	d   *Dispatcher
	url string
	// expiresIn is a new expiry, counted from the due time; zero: unchanged.
	expiresIn time.Duration
	pace      *pacer
	clock     storeClock
}

// revive revives jobs, and returns an error for each. Jobs that die after the first revival of the call are not revived
// again by it, since it might never end.
//
// Batches are revived one after the other, but their starts interleave. So starts are sent as times of the store's clock.
// The first job is revived alone, with a delay: its result has the time of that clock.
func (r *reviver) revive(ctx context.Context, jobs []job.Job, walk *store.Filter) []error {
	errs := make([]error, 0, len(jobs))
	if r.pace.limited() && !r.clock.known() && len(jobs) > 1 {
		errs = r.portion(ctx, jobs[:1], walk)
	}
	return append(errs, r.portion(ctx, jobs[len(errs):], walk)...)
}

// portion revives one batch.
func (r *reviver) portion(ctx context.Context, jobs []job.Job, walk *store.Filter) []error {
	items := make([]store.Revival, len(jobs))
	absolute := r.clock.known()
	reach := int64(0)
	if absolute {
		reach = millisUp(r.clock.earliest())
		narrowTo(walk, r.clock.at.Add(r.clock.elapsed()))
	}
	for i, j := range jobs {
		items[i] = store.Revival{Ref: j.Ref(), URL: r.url, From: job.Dead}
		at := time.Duration(r.pace.nextDelay(j.Queue, reach)) * time.Millisecond
		if absolute {
			items[i].RunAt = r.clock.at.Add(at)
		} else {
			items[i].Delay = at
		}
		if r.expiresIn > 0 {
			items[i].ExpiresIn = r.expiresIn + at
		}
	}
	errs := make([]error, len(items))
	asked := time.Now()
	results := r.d.store.Revive(ctx, items)
	took := time.Since(asked)
	for i, one := range results {
		if errs[i] = one.Err; one.Err != nil || absolute {
			continue
		}
		at := one.Job.FirstDueAt.Add(-items[i].Delay)
		narrowTo(walk, at)
		if r.pace.limited() {
			r.clock.observe(at, took)
		}
	}
	return errs
}

// narrowTo limits a selection to jobs that died before a time.
func narrowTo(walk *store.Filter, at time.Time) {
	if walk.Before.IsZero() || at.Before(walk.Before) {
		walk.Before = at
	}
}

// nextStart returns the delay from now at which the pace allows the next start.
func (r *reviver) nextStart() time.Duration {
	end := time.Duration(r.pace.end()) * time.Millisecond
	if r.clock.known() {
		end = max(end-r.clock.elapsed(), 0)
	}
	return end
}

// PurgeDead deletes dead letters.
func (d *Dispatcher) PurgeDead(ctx context.Context, which store.Selection) (store.BulkResult, error) {
	t := bulkTask{selection: which, do: func(jobs []job.Job, _ *store.Filter) []error {
		refs := make([]job.Ref, len(jobs))
		for i, j := range jobs {
			refs[i] = j.Ref()
		}
		return d.store.Purge(ctx, refs)
	}}
	err := d.run(ctx, &t)
	return t.BulkResult, err
}

// run executes a task in batches until it is done or the context's deadline is near.
func (d *Dispatcher) run(ctx context.Context, t *bulkTask) error {
	switch {
	case len(t.selection.IDs) > 0:
		return d.runByID(ctx, t)
	case t.selection.Filter.Topic != "":
		return d.runTopic(ctx, t, t.selection.Filter)
	default:
		return d.runAll(ctx, t)
	}
}

// runAll walks all topics.
func (d *Dispatcher) runAll(ctx context.Context, t *bulkTask) error {
	if t.More = isOutOfTime(ctx); t.More {
		return nil
	}
	filter := t.selection.Filter
	for name, err := range d.deadTopics(ctx, filter.Namespace, "") {
		if err != nil {
			return err
		}
		filter.Topic = name
		if err := d.runTopic(ctx, t, filter); err != nil || t.More {
			return err
		}
	}
	return nil
}

// runTopic walks one topic.
func (d *Dispatcher) runTopic(ctx context.Context, t *bulkTask, filter store.Filter) error {
	filter.State, filter.Cursor = job.Dead, ""
	step := batchSize(firstBatch)
	for {
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
		if filter.Cursor = page.Cursor; filter.Cursor == "" {
			return nil
		}
	}
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
			case found.err != nil:
				errs[i] = found.err
			case found.State != job.Dead:
				errs[i] = &store.StateError{State: found.State}
			default:
				jobs[i] = found.Job
			}
			if t.selection.DryRun && isStoreError(errs[i]) {
				return errs[i]
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

// isStoreError reports whether an error is one of the store, not of a single dead letter.
func isStoreError(err error) bool {
	_, state := errors.AsType[*store.StateError](err)
	return err != nil && !state && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrExpired)
}
