package dispatcher

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Dead reads one page of dead letters: of a topic, or (an empty one) of all topics, in order of name.
func (d *Dispatcher) Dead(ctx context.Context, filter store.Filter) (store.Page, error) {
	filter.State = job.Dead
	if filter.Topic != "" {
		return d.store.List(ctx, filter)
	}
	after, inner := "", ""
	if filter.Cursor != "" {
		var ok bool
		if after, inner, ok = strings.Cut(filter.Cursor, "/"); !ok || !job.IsTopic(after) {
			return store.Page{}, store.ErrCursor
		}
	}
	if inner != "" { // in the middle of a topic the names of the others do not matter
		filter.Topic, filter.Cursor = after, inner
		page, err := d.store.List(ctx, filter)
		if err != nil {
			return store.Page{}, err
		}
		if page.Cursor != "" {
			page.Cursor = after + "/" + page.Cursor
			return page, nil
		}
		if len(page.Jobs) > 0 {
			page.Cursor, err = d.deadAfter(ctx, filter.Namespace, after)
			return page, err
		}
	}
	names, err := d.deadTopics(ctx, filter.Namespace)
	if err != nil {
		return store.Page{}, err
	}
	at, found := slices.BinarySearch(names, after)
	if found && inner != "" {
		at++
	}
	filter.Cursor = ""
	for ; at < len(names); at++ {
		filter.Topic = names[at]
		page, err := d.store.List(ctx, filter)
		switch {
		case err != nil:
			return store.Page{}, err
		case page.Cursor != "":
			page.Cursor = names[at] + "/" + page.Cursor
			return page, nil
		case len(page.Jobs) > 0 && at+1 < len(names):
			page.Cursor = names[at+1] + "/"
			return page, nil
		case len(page.Jobs) > 0:
			return page, nil
		}
	}
	return store.Page{}, nil
}

// deadAfter is the cursor that goes on with the topic after a name; empty when there is none.
func (d *Dispatcher) deadAfter(ctx context.Context, namespace, name string) (string, error) {
	names, err := d.deadTopics(ctx, namespace)
	if err != nil {
		return "", err
	}
	at, found := slices.BinarySearch(names, name)
	if found {
		at++
	}
	if at == len(names) {
		return "", nil
	}
	return names[at] + "/", nil
}

// deadTopics are the names of the topics in which jobs have died, in order.
func (d *Dispatcher) deadTopics(ctx context.Context, namespace string) (names []string, err error) {
	stats, err := d.store.Stats(ctx, namespace, "")
	if err != nil {
		return nil, err
	}
	for _, s := range stats {
		if s.Dead > 0 && s.Namespace == namespace {
			names = append(names, s.Topic)
		}
	}
	return names, nil
}

const (
	// maxFailed is how many dead letters that failed are named.
	maxFailed = 100
	// workReserve is what is left of a caller's time for the answer.
	workReserve = 5 * time.Second
	deadPage    = 500
	// countAtOnce is how many chosen jobs are looked up at once where they are only counted.
	countAtOnce = 32
)

// ReviveDead sends dead letters on another round, with a fresh budget. *job.InvalidError when the URL may not be called.
func (d *Dispatcher) ReviveDead(ctx context.Context, which store.Selection, how store.RevivePlan) (store.Worked, error) {
	if how.URL != "" {
		if err := d.checkURL("/url", how.URL); err != nil {
			return store.Worked{}, err
		}
	}
	p := newPaces(how)
	worked, err := d.work(ctx, which, func(jobs []job.Job, walk *store.Filter) []error {
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
	})
	worked.Paced = p.come()
	return worked, err
}

// began is when a job was revived, by the store's clock. What has died since died of its new round, and is not for the
// same walk to revive: it could go on for as long as jobs die quickly.
func began(j job.Job, delay time.Duration) time.Time {
	return j.Since.Add(-(delay + time.Millisecond - 1).Truncate(time.Millisecond))
}

// PurgeDead removes dead letters for good.
func (d *Dispatcher) PurgeDead(ctx context.Context, which store.Selection) (store.Worked, error) {
	return d.work(ctx, which, func(jobs []job.Job, _ *store.Filter) []error {
		refs := make([]job.Ref, len(jobs))
		for i, j := range jobs {
			refs[i] = j.Ref()
		}
		return d.store.Purge(ctx, refs)
	})
}

// work does something to a selection, page by page, for as long as ctx leaves time. What is done may narrow the walk.
func (d *Dispatcher) work(ctx context.Context, which store.Selection, do func(jobs []job.Job, walk *store.Filter) []error) (store.Worked, error) {
	var w tally
	var err error
	switch {
	case len(which.IDs) > 0 && which.DryRun:
		err = d.countChosen(ctx, which, &w)
	case len(which.IDs) > 0:
		for part := range slices.Chunk(which.IDs, deadPage) {
			if w.More = late(ctx); w.More {
				break
			}
			jobs := named(which.Filter.Namespace, part)
			w.add(jobs, do(jobs, &store.Filter{}))
		}
	case which.Filter.Topic != "":
		err = d.workTopic(ctx, which, which.Filter, &w, do)
	default:
		err = d.workAll(ctx, which, &w, do)
	}
	return w.Worked, err
}

// workAll walks all topics, whose names it reads once.
func (d *Dispatcher) workAll(ctx context.Context, which store.Selection, w *tally, do func([]job.Job, *store.Filter) []error) error {
	if w.More = late(ctx); w.More {
		return nil
	}
	names, err := d.deadTopics(ctx, which.Filter.Namespace)
	if err != nil {
		return err
	}
	filter := which.Filter
	for _, name := range names {
		filter.Topic = name
		if err := d.workTopic(ctx, which, filter, w, do); err != nil || w.More {
			return err
		}
	}
	return nil
}

// workTopic walks one topic.
func (d *Dispatcher) workTopic(ctx context.Context, which store.Selection, filter store.Filter, w *tally, do func([]job.Job, *store.Filter) []error) error {
	filter.State, filter.Limit, filter.Cursor = job.Dead, deadPage, ""
	for {
		if w.More = late(ctx); w.More {
			return nil
		}
		page, err := d.store.List(ctx, filter)
		if err != nil {
			return err
		}
		if which.DryRun {
			w.Matched += int64(len(page.Jobs))
		} else if len(page.Jobs) > 0 {
			w.add(page.Jobs, do(page.Jobs, &filter))
		}
		if filter.Cursor = page.Cursor; filter.Cursor == "" {
			return nil
		}
	}
}

// named are jobs of which only the ids are known.
func named(namespace string, ids []string) []job.Job {
	jobs := make([]job.Job, len(ids))
	for i, id := range ids {
		jobs[i].Namespace, jobs[i].ID = namespace, id
	}
	return jobs
}

// countChosen counts which of the chosen jobs are dead, a few at a time.
func (d *Dispatcher) countChosen(ctx context.Context, which store.Selection, w *tally) error {
	for part := range slices.Chunk(which.IDs, countAtOnce) {
		if w.More = late(ctx); w.More {
			return nil
		}
		jobs := named(which.Filter.Namespace, part)
		errs := make([]error, len(jobs))
		var all sync.WaitGroup
		for i, j := range jobs {
			all.Go(func() {
				found, err := d.store.Get(ctx, j.Ref())
				if errs[i] = err; err == nil && found.State != job.Dead {
					errs[i] = &store.StateError{State: found.State}
				}
			})
		}
		all.Wait()
		for i, err := range errs {
			_, other := errors.AsType[*store.StateError](err)
			switch {
			case err == nil:
				w.Matched++
			case other, errors.Is(err, store.ErrNotFound):
				w.fail(jobs[i].ID, err)
			default:
				return err
			}
		}
	}
	return nil
}

// A tally counts what becomes of a selection.
type tally struct{ store.Worked }

// add counts what became of some.
func (w *tally) add(jobs []job.Job, errs []error) {
	for i, err := range errs {
		if err == nil {
			w.Matched++
			w.Done++
			continue
		}
		if state, ok := errors.AsType[*store.StateError](err); !errors.Is(err, store.ErrNotFound) && (!ok || state.State == job.Dead) {
			w.Matched++
		}
		w.fail(jobs[i].ID, err)
	}
}

func (w *tally) fail(id string, err error) {
	if len(w.Failed) < maxFailed {
		w.Failed = append(w.Failed, store.Failed{ID: id, Err: err})
	}
}

// late reports whether a caller's time is nearly over.
func late(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < workReserve
}
