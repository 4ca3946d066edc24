package dispatcher

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

const (
	// pollEvery is the pause between two calls of a shard for ends by other processes.
	pollEvery = 200 * time.Millisecond
	// pollAloneEvery is that pause when no other process uses the store. Then calls find only cancelled jobs whose
	// lease expired.
	pollAloneEvery = 2 * time.Second
	// lastWait bounds a wait that begins when Run has ended, so that clients do not ask again at once until the process
	// ends.
	lastWait = time.Second
	// knownTimeout bounds a call of a shard.
	knownTimeout = 5 * time.Second
)

// endWaiters lets callers wait for the end of a job.
//
// It learns at once which jobs this process may have ended. For ends by other processes it asks each shard every
// pollEvery, or every pollAloneEvery if there can be no others, in one call for up to store.MaxBatch jobs. While nobody
// waits it makes no calls.
//
// It is safe for concurrent use, and does not bound the number of callers that wait.
type endWaiters struct {
	shards  []store.Shard
	every   time.Duration // the pause between two calls of a shard
	log     *slog.Logger
	wake    []chan struct{} // for the poll loop of each shard: there are jobs to ask for
	stopped chan struct{}   // closed when the context of Run has ended
	waiting atomic.Int64    // callers of Wait

	mu     sync.Mutex
	jobs   map[job.Ref]*watchedJob
	polled []map[job.Ref]struct{} // of jobs, by shard
}

// watchedJob is a job for whose end callers wait.
type watchedJob struct {
	shard   int // -1: not known yet
	waiters []chan struct{}
	settled *store.Settlement // by this process, with the verdict Delivered or Dead; nil: none was
}

// newEndWaiters returns those of a store's jobs. alone: no other process uses the store.
func newEndWaiters(s store.Store, alone bool, log *slog.Logger) *endWaiters {
	w := &endWaiters{
		shards: s.Shards(), every: pollEvery, log: log, stopped: make(chan struct{}),
		jobs: make(map[job.Ref]*watchedJob),
	}
	if alone {
		w.every = pollAloneEvery
	}
	for range w.shards {
		w.wake = append(w.wake, make(chan struct{}, 1))
		w.polled = append(w.polled, make(map[job.Ref]struct{}))
	}
	return w
}

// Waiting returns the number of callers of Wait.
func (w *endWaiters) Waiting() int { return int(w.waiting.Load()) }

// Run looks for ends by other processes until ctx ends. Then it ends all waits. Call it once.
func (w *endWaiters) Run(ctx context.Context) {
	var polling sync.WaitGroup
	for n := range w.wake {
		polling.Go(func() { w.pollShard(ctx, n) })
	}
	<-ctx.Done()
	close(w.stopped)
	polling.Wait()
}

// Wait returns the job that get reads once it has ended, or after limit, or when Run ends. When Run has ended, it waits
// for the lesser of limit and lastWait. last is the job as it was registered, or its Ref. A job that was removed when
// it had ended is returned as it was last, with its state, and with the attempt that ended it if this process has
// settled it. An error is one of get or of the store, or the cause of ctx's end.
func (w *endWaiters) Wait(
	ctx context.Context, last job.Job, limit time.Duration, get func(context.Context) (job.Job, error),
) (job.Job, error) {
	stopped := w.stopped
	select {
	case <-stopped:
		limit, stopped = min(limit, lastWait), nil
	default:
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	ref := last.Ref()
	maybeEnded := w.add(ref) // before the job is read, so that no end is missed
	defer w.remove(ref, maybeEnded)
	for waiting := true; ; {
		found, err := get(ctx)
		switch {
		case errors.Is(err, store.ErrNotFound) && last.Topic != "":
			return w.removedJob(ctx, last, maybeEnded)
		case err != nil || found.State.Ended() || !waiting:
			return found, err
		}
		last = found
		w.poll(ref, store.ShardOf(len(w.wake), found.Queue))
		select {
		case <-maybeEnded:
		case <-over.C:
			waiting = false
		case <-stopped:
			waiting = false
		case <-ctx.Done():
			return job.Job{}, context.Cause(ctx)
		}
	}
}

// removedJob returns a removed job as it has ended: store.ErrNotFound if neither its shard nor this process knows how.
func (w *endWaiters) removedJob(ctx context.Context, j job.Job, maybeEnded <-chan struct{}) (job.Job, error) {
	statuses, err := w.known(ctx, store.ShardOf(len(w.wake), j.Queue), []job.Ref{j.Ref()})
	if err != nil {
		return job.Job{}, err
	}
	ended := statuses[0].Ended
	over := time.NewTimer(pollEvery) // the answer to this process's settlement may be on its way
	defer over.Stop()
	for {
		settled := w.settlement(j.Ref())
		switch {
		case settled != nil:
			end(&j, settled)
			if ended == "" || ended == j.State {
				return j, nil
			}
			fallthrough // it was revived, and has ended again
		case ended != "":
			if j.State != ended {
				j.State, j.Reason = ended, ""
			}
			return j, nil
		}
		select {
		case <-maybeEnded:
		case <-over.C:
			return job.Job{}, store.ErrNotFound
		case <-ctx.Done():
			return job.Job{}, context.Cause(ctx)
		}
	}
}

// end ends a job as its settlement did.
func end(j *job.Job, settled *store.Settlement) {
	switch {
	case settled.Verdict.Kind == policy.Delivered:
		j.State = job.Delivered
	case j.CancelRequested:
		j.State, j.Reason = job.Cancelled, job.ReasonCancelled
	default:
		j.State, j.Reason = job.Dead, settled.Verdict.Reason
	}
	if settled.Attempt.Kind.Counts() {
		j.Attempts = settled.Attempt.N
		j.SetAnswer(settled.Attempt.Answer())
	}
	if settled.Attempt.Kind != "" {
		j.AddAttempt(settled.Attempt)
	}
}

// settlement returns the settlement by which this process has ended a job; nil: none.
func (w *endWaiters) settlement(ref job.Ref) *store.Settlement {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.jobs[ref].settled
}

// add adds a caller that waits for a job.
func (w *endWaiters) add(ref job.Ref) (maybeEnded chan struct{}) {
	maybeEnded = make(chan struct{}, 1)
	w.waiting.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	watched := w.jobs[ref]
	if watched == nil {
		watched = &watchedJob{shard: -1}
		w.jobs[ref] = watched
	}
	watched.waiters = append(watched.waiters, maybeEnded)
	return maybeEnded
}

// remove removes a caller that waits for a job.
func (w *endWaiters) remove(ref job.Ref, maybeEnded chan struct{}) {
	w.waiting.Add(-1)
	w.mu.Lock()
	defer w.mu.Unlock()
	watched := w.jobs[ref]
	watched.waiters = slices.DeleteFunc(watched.waiters, func(c chan struct{}) bool { return c == maybeEnded })
	if len(watched.waiters) == 0 {
		w.setShard(ref, -1)
		delete(w.jobs, ref)
	}
}

// MayHaveEnded wakes the callers that wait for a job, because it may have ended: by a settlement of this process if
// settled is not nil. Any verdict may end a job, because it may be marked as cancelled.
func (w *endWaiters) MayHaveEnded(ref job.Ref, settled *store.Settlement) {
	if w.waiting.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if watched := w.jobs[ref]; watched != nil {
		if settled != nil && (settled.Verdict.Kind == policy.Delivered || settled.Verdict.Kind == policy.Dead) {
			kept := *settled // the caller may use it again
			kept.Outbox, kept.Body = nil, nil
			watched.settled = &kept
		}
		for _, maybeEnded := range watched.waiters {
			signal(maybeEnded)
		}
	}
}

// signal sends on a channel with a buffer of one, unless a signal is there already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// poll makes the shard of a job be asked for its end.
func (w *endWaiters) poll(ref job.Ref, shard int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setShard(ref, shard)
	signal(w.wake[shard])
}

// setShard sets the shard that is asked for a job; -1: none. The caller holds the mutex.
func (w *endWaiters) setShard(ref job.Ref, shard int) {
	watched := w.jobs[ref]
	if watched.shard >= 0 {
		delete(w.polled[watched.shard], ref)
	}
	if watched.shard = shard; shard >= 0 {
		w.polled[shard][ref] = struct{}{}
	}
}

// pollShard asks a shard for the ends of its jobs while callers wait for some.
func (w *endWaiters) pollShard(ctx context.Context, n int) {
	next := time.NewTimer(0)
	defer next.Stop()
	var backoff store.Backoff
	for {
		select {
		case <-w.wake[n]:
		case <-ctx.Done():
			return
		}
		for pause := w.every; ; {
			next.Reset(pause)
			select {
			case <-next.C:
			case <-ctx.Done():
				return
			}
			refs := w.jobsOf(n)
			if len(refs) == 0 {
				break
			}
			if err := w.notifyEnded(ctx, n, refs); err == nil {
				pause = w.every
				backoff.Reset()
			} else if ctx.Err() == nil {
				w.log.Log(ctx, backoff.Level(),
					"looking for jobs that other processes ended failed, retrying; requests that wait for them are "+
						"answered later", "shard", n, "err", err)
				pause = max(w.every, backoff.Next())
			}
		}
	}
}

// jobsOf returns the jobs of a shard for whose end callers wait.
func (w *endWaiters) jobsOf(shard int) []job.Ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.polled[shard]))
}

// notifyEnded notifies the callers that wait for jobs of a shard that have ended, or are gone.
func (w *endWaiters) notifyEnded(ctx context.Context, shard int, refs []job.Ref) error {
	for part := range slices.Chunk(refs, store.MaxBatch) {
		statuses, err := w.known(ctx, shard, part)
		if err != nil {
			return err
		}
		for i, status := range statuses {
			if !status.Unfinished() {
				w.MayHaveEnded(part[i], nil)
			}
		}
	}
	return nil
}

// known makes one call of a shard.
func (w *endWaiters) known(ctx context.Context, shard int, refs []job.Ref) ([]store.IDStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, knownTimeout)
	defer cancel()
	return w.shards[shard].Known(ctx, refs)
}
