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
func (d *Dispatcher) ReviveDead(ctx context.Context, which store.Selection, how store.RevivePlan) (store.Worked, error) {
	t := task{which: which}
	if how.URL != "" {
		if err := d.checkURL("/url", how.URL); err != nil {
			return store.Worked{}, err
		}
		// A revival cannot name a version as an edit can: a letter that somebody revives, changes and lets die again between
		// the look and the revival is taken as it was at the look.
		t.refuse = func(j *job.Job) error { return astray(j, how.URL, notForRevival) }
	}
	p := newPaces(how)
	t.do = func(jobs []job.Job, walk *store.Filter) []error {
		items := make([]store.Revival, len(jobs))
		for i, j := range jobs {
			items[i] = store.Revival{Ref: j.Ref(), URL: how.URL, From: job.Dead, Delay: p.next(j.Queue)}
		}
		errs := make([]error, len(items))
		for i, r := range d.store.Revive(ctx, items) {
			if errs[i] = r.Err; r.Err != nil {
				continue
			}
			if now := began(r.Job, items[i].Delay); walk.Before.IsZero() || now.Before(walk.Before) {
				walk.Before = now
			}
		}
		return errs
	}
	err := d.work(ctx, &t)
	t.Paced = p.come()
	return t.Worked, err
}

// began is when a job was revived, by the store's clock. What has died since died of its new round, and is not for the
// same walk to revive: it could go on for as long as jobs die quickly.
func began(j job.Job, delay time.Duration) time.Time {
	return j.Since.Add(-(delay + time.Millisecond - 1).Truncate(time.Millisecond))
}

// PurgeDead removes dead letters for good.
func (d *Dispatcher) PurgeDead(ctx context.Context, which store.Selection) (store.Worked, error) {
	t := task{which: which, do: func(jobs []job.Job, _ *store.Filter) []error {
		refs := make([]job.Ref, len(jobs))
		for i, j := range jobs {
			refs[i] = j.Ref()
		}
		return d.store.Purge(ctx, refs)
	}}
	err := d.work(ctx, &t)
	return t.Worked, err
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

// workAll walks all topics, whose names it reads once.
func (d *Dispatcher) workAll(ctx context.Context, t *task) error {
	if t.More = late(ctx); t.More {
		return nil
	}
	filter := t.which.Filter
	names, err := d.deadTopics(ctx, filter.Namespace)
	if err != nil {
		return err
	}
	for _, name := range names {
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
	return err != nil && !state && !errors.Is(err, store.ErrNotFound)
}
