package dispatcher

import (
	"context"
	"time"

	"github.com/ringback/ringback/dispatcher/pace"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
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
		checkOrigin, due := t.refuse, time.Now().Add(how.Delay) // of the first: the pace is not computed
		t.refuse = func(j *job.Job) error {
			if !j.ExpiresAt.IsZero() && j.ExpiresAt.Before(due) {
				return store.ErrExpired
			}
			if checkOrigin == nil {
				return nil
			}
			return checkOrigin(j)
		}
	}
	r := reviver{d: d, url: how.URL, expiresIn: how.ExpiresIn, actor: how.Actor, pace: pace.New(how.Rate, how.LaneRate, how.Delay)}
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
	actor     string
	pace      *pace.Pacer
	clock     storeClock
}

// revive revives jobs, and returns an error for each. Jobs that die after the first revival of the call are not revived
// again by it, since it might never end.
//
// Batches are revived one after the other, but their starts interleave. So starts are sent as times of the store's clock.
// The first job is revived alone, with a delay: its result has the time of that clock.
func (r *reviver) revive(ctx context.Context, jobs []job.Job, walk *store.Filter) []error {
	errs := make([]error, 0, len(jobs))
	if r.pace.Limited() && !r.clock.known() && len(jobs) > 1 {
		errs = r.portion(ctx, jobs[:1], walk)
	}
	return append(errs, r.portion(ctx, jobs[len(errs):], walk)...)
}

// portion revives one batch.
func (r *reviver) portion(ctx context.Context, jobs []job.Job, walk *store.Filter) []error {
	items := make([]store.Revival, len(jobs))
	absolute := r.clock.known()
	var earliest, elapsed time.Duration
	if absolute {
		earliest, elapsed = r.clock.earliest(), r.clock.elapsed()
		narrowTo(walk, r.clock.at.Add(elapsed))
	}
	for i, j := range jobs {
		items[i] = store.Revival{Ref: j.Ref(), URL: r.url, From: job.Dead, Actor: r.actor}
		at := r.pace.Next(j.Queue, earliest)
		if absolute {
			items[i].RunAt = r.clock.at.Add(at)
		} else {
			items[i].Delay = at
		}
		if r.expiresIn > 0 {
			items[i].ExpiresIn = r.expiresIn + at - elapsed // it counts from now
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
		if r.pace.Limited() {
			r.clock.observe(at, took)
		}
	}
	return errs
}

// narrowTo limits a selection to jobs that died before a time.
func narrowTo(walk *store.Filter, at time.Time) {
	if walk.Ended.Before.IsZero() || at.Before(walk.Ended.Before) {
		walk.Ended.Before = at
	}
}

// nextStart returns the delay from now at which the pace allows the next start.
func (r *reviver) nextStart() time.Duration {
	end := r.pace.End()
	if r.clock.known() {
		end = max(end-r.clock.elapsed(), 0)
	}
	return end
}

// storeClock estimates the store's time from a reply of the store.
type storeClock struct {
	at, read time.Time     // the store's time in that reply, and ours at its receipt
	slowest  time.Duration // duration of a call
}

// observe records the store's time in a reply, and the duration of the call.
func (c *storeClock) observe(at time.Time, took time.Duration) {
	if !c.known() {
		c.at, c.read = at, time.Now()
	}
	c.slowest = max(c.slowest, took)
}

func (c *storeClock) known() bool { return !c.at.IsZero() }

// elapsed returns the time since the reply. The store's clock has advanced at least as much.
func (c *storeClock) elapsed() time.Duration { return time.Since(c.read) }

// earliest returns the earliest time, relative to at, that has not passed when a call made now reaches the store.
func (c *storeClock) earliest() time.Duration { return c.elapsed() + 10*time.Millisecond + 4*c.slowest }
