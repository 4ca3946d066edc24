package router

import (
	"context"
	"slices"
	"sync"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Revive is Jobs.Revive for any number of jobs on any shards: a result for each, in order. When a shard fails, its jobs
// get the error.
func (r *Router) Revive(ctx context.Context, items []store.Revival) []store.ReviveResult {
	refs := make([]job.Ref, len(items))
	for i, item := range items {
		refs[i] = item.Ref
	}
	return bulk(ctx, r, refs, func(shard store.Shard, indexes []int) ([]store.ReviveResult, error) {
		return shard.Revive(ctx, store.NewToken(), pick(items, indexes))
	}, func(err error) store.ReviveResult { return store.ReviveResult{Err: err} })
}

// Purge is Jobs.Purge for any number of jobs on any shards: an error for each, in order.
func (r *Router) Purge(ctx context.Context, items []store.Removal) []error {
	refs := make([]job.Ref, len(items))
	for i, item := range items {
		refs[i] = item.Ref
	}
	return bulk(ctx, r, refs, func(shard store.Shard, indexes []int) ([]error, error) {
		return shard.Purge(ctx, store.NewToken(), pick(items, indexes))
	}, func(err error) error { return err })
}

// bulk calls do for the jobs of each shard, up to MaxBatch at a time, and returns a result for each job. Jobs that no
// shard knows, and those of a call that fails, get the result of fail.
func bulk[T any](
	ctx context.Context, r *Router, refs []job.Ref, do func(store.Shard, []int) ([]T, error), fail func(error) T,
) []T {
	results := make([]T, len(refs))
	at, err := r.Find(ctx, refs)
	byShard := make([][]int, len(r.shards))
	for i := range refs {
		switch {
		case at[i] < 0 && err != nil:
			results[i] = fail(err) // the job may be on the shard that failed
		case at[i] < 0:
			results[i] = fail(store.ErrNotFound)
		default:
			byShard[at[i]] = append(byShard[at[i]], i)
		}
	}
	var shards sync.WaitGroup
	for n, indexes := range byShard {
		if len(indexes) == 0 {
			continue
		}
		shards.Go(func() {
			for part := range slices.Chunk(indexes, store.MaxBatch) {
				done, err := do(r.shards[n], part)
				for k, i := range part {
					if err != nil {
						results[i] = fail(err)
					} else {
						results[i] = done[k]
					}
				}
			}
		})
	}
	shards.Wait()
	return results
}

// pick returns the items at the indexes.
func pick[T any](items []T, indexes []int) []T {
	picked := make([]T, len(indexes))
	for k, i := range indexes {
		picked[k] = items[i]
	}
	return picked
}
