package router

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// KnownOnAny reports for each id whether any shard knows it, as Jobs.Known does for one shard.
func (r *Router) KnownOnAny(ctx context.Context, refs []job.Ref) ([]bool, error) {
	return r.isOnAny(ctx, refs, store.IDStatus.Known)
}

// UnfinishedOnAny reports for each id whether any shard has an unfinished job of it.
func (r *Router) UnfinishedOnAny(ctx context.Context, refs []job.Ref) ([]bool, error) {
	return r.isOnAny(ctx, refs, store.IDStatus.Unfinished)
}

func (r *Router) isOnAny(ctx context.Context, refs []job.Ref, is func(store.IDStatus) bool) ([]bool, error) {
	on := make([]bool, 0, len(refs))
	for part := range slices.Chunk(refs, store.MaxBatch) {
		found, err := r.find(ctx, part, -1, is)
		if err != nil {
			return nil, err
		}
		for _, ref := range part {
			_, yes := found[ref]
			on = append(on, yes)
		}
	}
	return on, nil
}

// findKnown returns the shard on which each of up to MaxBatch ids is known. It does not search the shard except; -1: it
// searches all.
func (r *Router) findKnown(ctx context.Context, refs []job.Ref, except int) (map[job.Ref]int, error) {
	return r.find(ctx, refs, except, store.IDStatus.Known)
}

func (r *Router) find(ctx context.Context, refs []job.Ref, except int, is func(store.IDStatus) bool) (map[job.Ref]int, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	results := make([][]store.IDStatus, len(r.shards))
	err := r.forEachShard(func(n int, _ store.Shard) (err error) {
		if n != except {
			results[n], err = r.known[n].do(ctx, refs)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for known ids: %w", err)
	}
	found := make(map[job.Ref]int)
	for n, ofShard := range results {
		for i, status := range ofShard {
			if is(status) {
				found[refs[i]] = n
			}
		}
	}
	return found, nil
}

// Find returns for each job the number of its shard, or -1 when no shard knows it. For an id that two shards know, it
// returns the shard that the id names, else the lowest.
func (r *Router) Find(ctx context.Context, refs []job.Ref) ([]int, error) {
	at := make([]int, len(refs))
	if len(r.shards) == 1 {
		return at, nil
	}
	for i := range at {
		at[i] = -1
	}
	var mu sync.Mutex
	err := r.forEachShard(func(n int, shard store.Shard) error {
		start := 0
		for part := range slices.Chunk(refs, store.MaxBatch) {
			known, err := shard.Known(ctx, part)
			if err != nil {
				return fmt.Errorf("look for jobs: %w", err)
			}
			mu.Lock()
			for i, status := range known {
				if status.Known() && !prefers(part[i], at[start+i], n) {
					at[start+i] = n
				}
			}
			mu.Unlock()
			start += len(part)
		}
		return nil
	})
	return at, err
}

// prefers reports whether Find prefers shard a, or -1, to shard b.
func prefers(ref job.Ref, a, b int) bool {
	named, ok := job.ShardOf(ref.ID)
	switch {
	case a < 0 || ok && named == b:
		return false
	case ok && named == a:
		return true
	}
	return a < b
}
