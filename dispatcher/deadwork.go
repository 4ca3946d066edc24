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
	// maxFailed is how many dead letters that failed are named.
	maxFailed = 100
	// workReserve is what is left of a caller's time for the answer.
	workReserve = 5 * time.Second
)

// ReviveDead sends dead letters on another round, with a fresh budget. *job.InvalidError when the URL may not be called.
// A letter whose secrets would go to another origin with that URL fails with one of its own.
func (d *Dispatcher) ReviveDead(ctx context.Context, which store.Selection, how store.RevivePlan) (store.BulkResult, error) {
	t := task{which: which}
	if how.URL != "" {
		if err := d.checkURL("/url", how.URL); err != nil {
			return store.BulkResult{}, err
		}
		// A revival cannot name a version as an edit can: a letter that somebody revives, changes and lets die again between
		// the look and the revival is taken as it was at the look.
		t.refuse = func(j *job.Job) error { return d.astray(j, how.URL, notForRevival) }
	}
	if which.DryRun && how.ExpiresIn == 0 {
		astray, now := t.refuse, time.Now()
		t.refuse = func(j *job.Job) error {
			if !j.ExpiresAt.IsZero() && j.ExpiresAt.Before(now) {
				return store.ErrExpired
			}
			if astray == nil {
				return nil
			}
			return astray(j)
		}
	}
	r := reviver{d: d, url: how.URL, expiresIn: how.ExpiresIn, pace: newPacer(how)}
	t.do = func(jobs []job.Job, walk *store.Filter) []error { return r.revive(ctx, jobs, walk) }
	err := d.work(ctx, &t)
	t.NextDelay = r.paced()
	return t.BulkResult, err
}

// A reviver revives dead letters at a pace, portion by portion.
type reviver struct {
	d   *Dispatcher
	url string
	// expiresIn is a new expiry, from when each is due; zero: that of each stays.
	expiresIn time.Duration
	pace      *pacer
	clock     storeClock
}

// revive revives some, and answers an error for each. What dies from the walk's first revival on has died of its new
// round, and is not for the same walk to revive: it could go on for as long as jobs die quickly.
//
// The portions of a pace are revived one after the other, but their starts interleave. So the store gets them as instants
// of its own clock. The first start is revived alone, with a delay: its answer tells that clock.
func (r *reviver) revive(ctx context.Context, jobs []job.Job, walk *store.Filter) []error {
	errs := make([]error, 0, len(jobs))
	if r.pace.limited() && !r.clock.known() && len(jobs) > 1 {
		errs = r.portion(ctx, jobs[:1], walk)
	}
	return append(errs, r.portion(ctx, jobs[len(errs):], walk)...)
}

// portion revives some in one step.
func (r *reviver) portion(ctx context.Context, jobs []job.Job, walk *store.Filter) []error {
	items := make([]store.Revival, len(jobs))
	absolute := r.clock.known()
	reach := int64(0)
	if absolute {
		reach = millisUp(r.clock.reach())
		before(walk, r.clock.at.Add(r.clock.elapsed()))
	}
	for i, j := range jobs {
		items[i] = store.Revival{Ref: j.Ref(), URL: r.url, From: job.Dead}
		at := time.Duration(r.pace.next(j.Queue, reach)) * time.Millisecond
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
		before(walk, at)
		if r.pace.limited() {
			r.clock.learn(at, took)
		}
	}
	return errs
}

// before narrows a walk to what died before a moment.
func before(walk *store.Filter, at time.Time) {
	if walk.Before.IsZero() || at.Before(walk.Before) {
		walk.Before = at
	}
}

// paced is where the pace has come, from now on.
func (r *reviver) paced() time.Duration {
	end := time.Duration(r.pace.end()) * time.Millisecond
	if r.clock.known() {
		end = max(end-r.clock.elapsed(), 0)
	}
	return end
}

// PurgeDead removes dead letters for good.
func (d *Dispatcher) PurgeDead(ctx context.Context, which store.Selection) (store.BulkResult, error) {
	t := task{which: which, do: func(jobs []job.Job, _ *store.Filter) []error {
		refs := make([]job.Ref, len(jobs))
		for i, j := range jobs {
			refs[i] = j.Ref()
		}
		return d.store.Purge(ctx, refs)
	}}
	err := d.work(ctx, &t)
	return t.BulkResult, err
}

// work does a task, portion by portion, for as long as ctx leaves time.
func (d *Dispatcher) work(ctx context.Context, t *task) error {
	switch {
	case len(t.which.IDs) > 0:
		return d.workChosen(ctx, t)
	case t.which.Filter.Topic != "":
		return d.workTopic(ctx, t, t.which.Filter)
	default:
		return d.workAll(ctx, t)
	}
}

// workAll walks all topics.
func (d *Dispatcher) workAll(ctx context.Context, t *task) error {
	if t.More = late(ctx); t.More {
		return nil
	}
	filter := t.which.Filter
	for name, err := range d.deadTopics(ctx, filter.Namespace, "") {
		if err != nil {
			return err
		}
		filter.Topic = name
		if err := d.workTopic(ctx, t, filter); err != nil || t.More {
			return err
		}
	}
	return nil
}

// workTopic walks one topic.
func (d *Dispatcher) workTopic(ctx context.Context, t *task, filter store.Filter) error {
	filter.State, filter.Cursor = job.Dead, ""
	step := stride(strideFirst)
	for {
		if t.More = late(ctx); t.More {
			return nil
		}
		filter.Limit = int(step)
		page, err := d.store.List(ctx, filter)
		if err != nil {
			return err
		}
		step.learn(d.sample(ctx, page.Jobs))
		for part := range slices.Chunk(page.Jobs, int(step)) {
			t.take(part, make([]error, len(part)), &filter)
		}
		if filter.Cursor = page.Cursor; filter.Cursor == "" {
			return nil
		}
	}
}

// workChosen works with letters that were chosen by their ids. Where it matters what they are, they are read first.
func (d *Dispatcher) workChosen(ctx context.Context, t *task) error {
	step := stride(strideFirst)
	for ids := t.which.IDs; len(ids) > 0; {
		if t.More = late(ctx); t.More {
			return nil
		}
		n := min(int(step), len(ids))
		if t.reads() {
			n = min(n, readAtOnce)
		}
		jobs, errs := named(t.which.Filter.Namespace, ids[:n]), make([]error, n)
		ids = ids[n:]
		if !t.reads() {
			step.learn(d.sample(ctx, jobs))
			for part := range slices.Chunk(jobs, int(step)) {
				t.take(part, errs[:len(part)], &store.Filter{})
			}
			continue
		}
		for i, found := range d.read(ctx, jobs) {
			switch {
			case found.err != nil:
				errs[i] = found.err
			case found.State != job.Dead:
				errs[i] = &store.StateError{State: found.State}
			default:
				jobs[i] = found.Job
			}
			if t.which.DryRun && isOfStore(errs[i]) {
				return errs[i]
			}
		}
		step.learn(bodies(jobs), n)
		t.take(jobs, errs, &store.Filter{})
	}
	return nil
}

// named are jobs of which only the ids are known.
func named(namespace string, ids []string) []job.Job {
	jobs := make([]job.Job, len(ids))
	for i, id := range ids {
		jobs[i].Namespace, jobs[i].ID = namespace, id
	}
	return jobs
}

// late reports whether a caller's time is nearly over.
func late(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < workReserve
}

// isOfStore reports whether an error says something about the store, and nothing about a letter.
func isOfStore(err error) bool {
	_, state := errors.AsType[*store.StateError](err)
	return err != nil && !state && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrExpired)
}
