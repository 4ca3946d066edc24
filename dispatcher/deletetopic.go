package dispatcher

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// DeleteTopic removes a topic's policy and secrets and the settings of its lanes, unless the topic has unfinished jobs.
// A purge first cancels these and removes the dead letters, until ctx's deadline is near. A job that is registered
// meanwhile stays. The records of other ended jobs stay for the default retention, and so do the topic's counts;
// afterwards Sweep forgets the topic.
//
// Errors: store.ErrNotFound, *store.RevisionError, *store.TopicInUseError and store.ErrContended. The call may be
// repeated after any error, and continues.
func (d *Dispatcher) DeleteTopic(
	ctx context.Context, deletion store.TopicDeletion,
) (done store.TopicDeleted, err error) {
	if _, err := d.deletableTopic(ctx, deletion); err != nil {
		return done, err
	}
	if deletion.Purge {
		if err := d.purgeTopic(ctx, deletion, &done); err != nil {
			return done, err
		}
	}
	_, err = retryOnConflict(ctx, func() (struct{}, error) {
		t, err := d.deletableTopic(ctx, deletion)
		if err == nil {
			err = d.checkUnused(ctx, deletion)
		}
		if err == nil {
			err = d.removePolicy(ctx, t)
		}
		return struct{}{}, err
	})
	if errors.Is(err, store.ErrNotFound) { // Sweep has forgotten it meanwhile
		err = nil
	}
	if err == nil {
		err = d.removeLanes(ctx, deletion)
	}
	return done, err
}

// deletableTopic reads a topic that is to be deleted. A topic of which only lanes with settings are left exists: its
// deletion was interrupted.
func (d *Dispatcher) deletableTopic(ctx context.Context, deletion store.TopicDeletion) (store.Topic, error) {
	t, err := d.Topic(ctx, deletion.Namespace, deletion.Name)
	if errors.Is(err, store.ErrNotFound) {
		lanes, failed := d.store.ListLanes(ctx, deletion.Namespace, deletion.Name, "", 1)
		if failed != nil || len(lanes) > 0 {
			t, err = store.Topic{Namespace: deletion.Namespace, Name: deletion.Name}, failed
		}
	}
	if err == nil {
		err = store.CheckCondition(deletion.IfRevision, t.Revision)
	}
	return t, err
}

// checkUnused returns a *store.TopicInUseError if a topic, or without a name the namespace, has unfinished jobs.
func (d *Dispatcher) checkUnused(ctx context.Context, deletion store.TopicDeletion) error {
	if deletion.Name == "" {
		usage, err := d.store.Usage(ctx, deletion.Namespace)
		if err == nil && usage.Jobs > 0 {
			err = &store.TopicInUseError{Unfinished: usage.Jobs}
		}
		return err
	}
	rows, err := d.store.TopicStats(ctx,
		store.StatsFilter{Namespace: deletion.Namespace, Topics: []string{deletion.Name}})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if unfinished := row.Scheduled + row.Ready + row.Running; unfinished > 0 {
			return &store.TopicInUseError{Unfinished: unfinished, Running: row.Running}
		}
	}
	return nil
}

const (
	// answerReserve is the time before a request's deadline at which a deletion ends, so that it can be answered.
	answerReserve = 5 * time.Second
	// readAtOnce bounds concurrent calls for single jobs, and the jobs that are purged at once.
	readAtOnce = 32
	// maxWalks bounds the walks over the unfinished jobs of a topic to which jobs keep coming.
	maxWalks = 10
)

// isOutOfTime reports whether the context's deadline is near.
func isOutOfTime(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < answerReserve
}

// purgeTopic cancels a topic's unfinished jobs and removes its dead letters. Without a name it cancels all unfinished
// jobs of the namespace, Ringback's own too, and removes all ended ones. Jobs that come or move while it walks are
// cancelled by another walk. Running jobs are only marked.
func (d *Dispatcher) purgeTopic(ctx context.Context, deletion store.TopicDeletion, done *store.TopicDeleted) error {
	filter := store.Filter{
		Namespace: deletion.Namespace, Topic: deletion.Name, States: []job.State{job.Scheduled, job.Ready, job.Running},
		Oldest: true, Limit: store.MaxListLimit, ScanLimit: scanLimit,
	}
	for walk, again := 0, true; again; walk++ {
		if walk == maxWalks {
			return d.outOfTime(ctx, deletion)
		}
		before := done.Cancelled
		err := d.walk(ctx, deletion, filter, func(part []job.Job) error {
			n, err := d.cancelAll(ctx, part, store.Cancellation{Actor: deletion.Actor})
			done.Cancelled += n
			return err
		})
		if err != nil {
			return err
		}
		again = done.Cancelled > before
	}
	filter.States = []job.State{job.Dead}
	if deletion.Name == "" {
		filter.States = []job.State{job.Delivered, job.Dead, job.Cancelled}
	}
	return d.walk(ctx, deletion, filter, func(part []job.Job) error {
		items := make([]store.Removal, len(part))
		for i := range part {
			items[i] = store.Removal{Ref: part[i].Ref(), From: part[i].State}
		}
		for _, err := range d.store.Purge(ctx, items) {
			switch {
			case errors.Is(err, store.ErrUnavailable):
				return err
			case err == nil:
				done.Purged++
			}
		}
		return nil
	})
}

// walk calls do for the jobs that a filter selects, at most readAtOnce at a time.
func (d *Dispatcher) walk(
	ctx context.Context, deletion store.TopicDeletion, filter store.Filter, do func([]job.Job) error,
) error {
	for more := true; more; {
		if isOutOfTime(ctx) {
			return d.outOfTime(ctx, deletion)
		}
		page, err := d.store.List(ctx, filter)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(page.Jobs, readAtOnce) {
			if isOutOfTime(ctx) {
				return d.outOfTime(ctx, deletion)
			}
			if err := do(part); err != nil {
				return err
			}
		}
		filter.After, more = page.Reached, page.More
	}
	return nil
}

// outOfTime returns the error of a deletion that is to be repeated.
func (d *Dispatcher) outOfTime(ctx context.Context, deletion store.TopicDeletion) error {
	if err := d.checkUnused(ctx, deletion); err != nil {
		return err
	}
	return new(store.TopicInUseError)
}

// cancelAll cancels at most readAtOnce jobs concurrently and counts those that it cancelled. It returns an error if the
// store is unavailable; jobs that have ended, or cannot be cancelled for another reason, are skipped.
func (d *Dispatcher) cancelAll(
	ctx context.Context, jobs []job.Job, cancellation store.Cancellation,
) (cancelled int64, failed error) {
	errs, states := make([]error, len(jobs)), make([]job.State, len(jobs))
	var all sync.WaitGroup
	for i := range jobs {
		all.Go(func() {
			got, err := d.store.Cancel(ctx, jobs[i].Ref(), cancellation)
			errs[i], states[i] = err, got.State
		})
	}
	all.Wait()
	for i, err := range errs {
		switch {
		case errors.Is(err, store.ErrUnavailable):
			failed = err
		case err == nil && states[i] == job.Cancelled:
			cancelled++
		}
	}
	return cancelled, failed
}

// removePolicy removes a topic's policy under the revision that was read, and its alarm. Without a policy it only makes
// the default limits hold, which a removal that failed half way may not have done.
func (d *Dispatcher) removePolicy(ctx context.Context, t store.Topic) error {
	shard := d.store.Shards()[d.store.ShardOfTopic(t.Namespace, t.Name)]
	if _, err := shard.Alarm(ctx, store.NewToken(), store.Alarm{Namespace: t.Namespace, Topic: t.Name}); err != nil {
		return err
	}
	if t.Revision == 0 {
		t.Revision = store.MustNotExist
	}
	if err := d.store.DeleteTopic(ctx, t); err != nil {
		return err
	}
	if _, err := d.policies.Reload(ctx); err != nil {
		d.log.Warn("reloading topic policies failed, using cached ones", "err", err)
	}
	return nil
}

// removeLanes removes the settings and secrets of a topic's lanes. Those that are put meanwhile stay, and keep the
// topic.
func (d *Dispatcher) removeLanes(ctx context.Context, deletion store.TopicDeletion) error {
	for after, more := "", true; more; {
		if isOutOfTime(ctx) {
			return new(store.TopicInUseError)
		}
		lanes, err := d.store.ListLanes(ctx, deletion.Namespace, deletion.Name, after, store.MaxBatch)
		if err != nil {
			return err
		}
		for _, l := range lanes {
			after, l.Settings = l.Queue.Lane, policy.Lane{}
			if _, err := d.store.PutLane(ctx, l); err != nil && !errors.Is(err, store.ErrVersion) {
				return err
			}
		}
		more = len(lanes) == store.MaxBatch
	}
	left, err := d.store.ListLanes(ctx, deletion.Namespace, deletion.Name, "", 1)
	if err != nil || len(left) == 0 {
		return err
	}
	return d.declare(ctx, left[0].Queue, left[0].Updated)
}
