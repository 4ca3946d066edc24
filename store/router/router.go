// Package router calls the shards of a store: it selects the shard of a queue or of a job, combines concurrent
// insertions into few calls, spreads calls for many jobs over the shards, and adds up counts.
//
// A Router is safe for concurrent use.
package router

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Router offers the methods of a shard for all shards of a store.
type Router struct {
	settings store.Settings
	shards   []store.Shard
	inserts  []*batcher[store.NewJob, store.InsertResult]
	known    []*batcher[job.Ref, store.IDStatus]
}

// New returns a Router over the shards of s.
func New(s store.Store) *Router {
	r := &Router{settings: s, shards: s.Shards()}
	for _, shard := range r.shards {
		r.inserts = append(r.inserts, newBatcher(store.MaxBatch, insertBytes, estimateSize, withTimeout(
			func(ctx context.Context, jobs []store.NewJob) ([]store.InsertResult, error) {
				return shard.Insert(ctx, store.NewToken(), jobs)
			})))
		r.known = append(r.known, newBatcher(store.MaxBatch, 0, nil, withTimeout(shard.Known)))
	}
	return r
}

// batchTimeout bounds one combined call. The contexts of its callers do not apply: they belong to many requests.
const batchTimeout = 10 * time.Second

// withTimeout returns call with batchTimeout. Its timeout means that the store is unavailable: no caller's context has
// ended.
func withTimeout[T, R any](call func(context.Context, []T) ([]R, error)) func([]T) ([]R, error) {
	return func(items []T) ([]R, error) {
		ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
		defer cancel()
		results, err := call(ctx, items)
		if err != nil && ctx.Err() != nil && !errors.Is(err, store.ErrUnavailable) {
			err = &store.UnavailableError{Reason: "the store did not answer in time", Err: err}
		}
		return results, err
	}
}

// Shards returns the store's shards.
func (r *Router) Shards() []store.Shard { return r.shards }

// ShardOf returns the number of the shard that stores the jobs of a queue. It depends on the queue's name alone.
func (r *Router) ShardOf(q job.Queue) int { return store.ShardOf(len(r.shards), q) }

// ShardOfTopic returns the number of the shard that keeps the permits and the alarm of a topic.
func (r *Router) ShardOfTopic(namespace, topic string) int {
	return store.ShardOfTopic(len(r.shards), namespace, topic)
}

// Get is Jobs.Get on the job's shard.
func (r *Router) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	_, found, err := r.locate(ctx, ref)
	return found, err
}

// GetIn is Get of a job whose queue is known: it asks one shard.
func (r *Router) GetIn(ctx context.Context, q job.Queue, ref job.Ref) (job.Job, error) {
	return r.shards[r.ShardOf(q)].Get(ctx, ref)
}

// Cancel is Jobs.Cancel on the job's shard.
func (r *Router) Cancel(ctx context.Context, ref job.Ref, cancellation store.Cancellation) (job.Job, error) {
	shard, err := r.shardOfJob(ctx, ref)
	if err != nil {
		return job.Job{}, err
	}
	return shard.Cancel(ctx, store.NewToken(), ref, cancellation)
}

// Replace is Jobs.Replace on the job's shard. A Spec names the job's queue and so its shard.
func (r *Router) Replace(ctx context.Context, ref job.Ref, replacement store.Replacement) (job.Job, error) {
	if spec := replacement.Spec; spec != nil {
		return r.shards[r.ShardOf(spec.Queue)].Replace(ctx, store.NewToken(), ref, replacement)
	}
	shard, err := r.shardOfJob(ctx, ref)
	if err != nil {
		return job.Job{}, err
	}
	return shard.Replace(ctx, store.NewToken(), ref, replacement)
}

// shardOfJob returns the shard that stores a job. ErrNotFound.
func (r *Router) shardOfJob(ctx context.Context, ref job.Ref) (store.Shard, error) {
	if len(r.shards) == 1 {
		return r.shards[0], nil
	}
	n, _, err := r.locate(ctx, ref)
	return r.shards[n], err
}

// locate finds a job: first on the shard that its id may name, then on all shards at once.
func (r *Router) locate(ctx context.Context, ref job.Ref) (int, job.Job, error) {
	if len(r.shards) == 1 {
		found, err := r.shards[0].Get(ctx, ref)
		return 0, found, err
	}
	if n, named := job.ShardOf(ref.ID); named && n < len(r.shards) {
		if found, err := r.shards[n].Get(ctx, ref); !errors.Is(err, store.ErrNotFound) {
			return n, found, err
		}
	}
	var mu sync.Mutex
	at, hit := len(r.shards), job.Job{}
	err := r.ForEachShard(func(n int, shard store.Shard) error {
		found, err := shard.Get(ctx, ref)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if n < at { // so that an id on two shards always means the same job
			at, hit = n, found
		}
		return nil
	})
	switch {
	case at < len(r.shards):
		return at, hit, nil
	case err != nil:
		return 0, job.Job{}, err
	}
	return 0, job.Job{}, store.ErrNotFound
}

// ForEachShard calls do for all shards concurrently and joins the errors.
func (r *Router) ForEachShard(do func(n int, shard store.Shard) error) error {
	errs := make([]error, len(r.shards))
	var wg sync.WaitGroup
	for n, shard := range r.shards {
		wg.Go(func() { errs[n] = do(n, shard) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
