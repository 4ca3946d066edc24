package store

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ringback/ringback/job"
)

// Find tells on which shard each job is; -1 where no shard knows it. Of an id that two know, the answer is the one that
// the id itself names, else the lowest.
func (r *Router) Find(ctx context.Context, refs []job.Ref) ([]int, error) {
	at := make([]int, len(refs))
	if len(r.shards) == 1 {
		return at, nil
	}
	for i := range at {
		at[i] = -1
	}
	var mu sync.Mutex
	err := r.each(func(shard int) error {
		start := 0
		for part := range slices.Chunk(refs, MaxBatch) {
			known, err := r.shards[shard].Known(ctx, part)
			if err != nil {
				return fmt.Errorf("look for jobs: %w", err)
			}
			mu.Lock()
			for i, yes := range known {
				if yes && !nearer(part[i], at[start+i], shard) {
					at[start+i] = shard
				}
			}
			mu.Unlock()
			start += len(part)
		}
		return nil
	})
	return at, err
}

// nearer reports whether a job is rather to be looked for on shard a than on shard b; a is -1 when nothing is known.
func nearer(ref job.Ref, a, b int) bool {
	named, ok := job.ShardOf(ref.ID)
	switch {
	case a < 0 || ok && named == b:
		return false
	case ok && named == a:
		return true
	}
	return a < b
}

// Revive is Store.Revive for any number of jobs, wherever they are: a result for each, in order. What one shard does not
// answer is an error of the jobs that are on it.
func (r *Router) Revive(ctx context.Context, items []Revival) []ReviveResult {
	refs := make([]job.Ref, len(items))
	for i, item := range items {
		refs[i] = item.Ref
	}
	results := make([]ReviveResult, len(items))
	r.many(ctx, refs, func(shard int, indexes []int) error {
		part := make([]Revival, len(indexes))
		for k, i := range indexes {
			part[k] = items[i]
		}
		revived, err := r.shards[shard].Revive(ctx, NewToken(), part)
		for k, one := range revived {
			results[indexes[k]] = one
		}
		return err
	}, func(i int, err error) { results[i].Err = err })
	return results
}

// Purge is Store.Purge for any number of jobs, wherever they are: an error for each, in order.
func (r *Router) Purge(ctx context.Context, refs []job.Ref) []error {
	errs := make([]error, len(refs))
	r.many(ctx, refs, func(shard int, indexes []int) error {
		part := make([]job.Ref, len(indexes))
		for k, i := range indexes {
			part[k] = refs[i]
		}
		gone, err := r.shards[shard].Purge(ctx, NewToken(), part)
		for k, one := range gone {
			errs[indexes[k]] = one
		}
		return err
	}, func(i int, err error) { errs[i] = err })
	return errs
}

// many calls do for jobs by their shard, MaxBatch at most at a time, and fail for each job that no shard knows or for
// which do failed.
func (r *Router) many(ctx context.Context, refs []job.Ref, do func(shard int, indexes []int) error, fail func(i int, err error)) {
	at, err := r.Find(ctx, refs)
	byShard := make([][]int, len(r.shards))
	for i := range refs {
		switch {
		case at[i] < 0 && err != nil:
			fail(i, err) // it may be where nobody answers
		case at[i] < 0:
			fail(i, ErrNotFound)
		default:
			byShard[at[i]] = append(byShard[at[i]], i)
		}
	}
	var shards sync.WaitGroup
	for shard, indexes := range byShard {
		if len(indexes) == 0 {
			continue
		}
		shards.Go(func() {
			for part := range slices.Chunk(indexes, MaxBatch) {
				if err := do(shard, part); err != nil {
					for _, i := range part {
						fail(i, err)
					}
				}
			}
		})
	}
	shards.Wait()
}

// PutLane is Store.PutLane on the lane's shard.
func (r *Router) PutLane(ctx context.Context, lane Lane) (Lane, error) {
	return r.shards[r.ShardOf(lane.Queue)].PutLane(ctx, NewToken(), lane)
}

// GetLanes is Store.GetLanes for queues of any shards: one for each, in order.
func (r *Router) GetLanes(ctx context.Context, queues []job.Queue) ([]Lane, error) {
	byShard := make([][]int, len(r.shards))
	for i, q := range queues {
		shard := r.ShardOf(q)
		byShard[shard] = append(byShard[shard], i)
	}
	lanes := make([]Lane, len(queues))
	err := r.each(func(shard int) error {
		for part := range slices.Chunk(byShard[shard], MaxBatch) {
			asked := make([]job.Queue, len(part))
			for k, i := range part {
				asked[k] = queues[i]
			}
			found, err := r.shards[shard].GetLanes(ctx, asked)
			if err != nil {
				return fmt.Errorf("read lanes' settings: %w", err)
			}
			for k, i := range part {
				lanes[i] = found[k]
			}
		}
		return nil
	})
	return lanes, err
}
