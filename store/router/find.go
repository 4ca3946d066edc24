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
	all, err := r.StatusOnAny(ctx, refs)
	if err != nil {
		return nil, err
	}
	known := make([]bool, len(all))
	for i := range all {
		known[i] = all[i].Known()
	}
	return known, nil
}

// StatusOnAny returns what the shards know of each id. Of one that several know, it is what the last of them knows.
func (r *Router) StatusOnAny(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error) {
	all := make([]store.IDStatus, 0, len(refs))
	for part := range slices.Chunk(refs, store.MaxBatch) {
		results, err := r.statuses(ctx, part, -1)
		if err != nil {
			return nil, err
		}
		for i := range part {
			var status store.IDStatus
			for _, ofShard := range results {
				if ofShard != nil && ofShard[i].Known() {
					status = ofShard[i]
				}
			}
			all = append(all, status)
		}
	}
	return all, nil
}

// findKnown returns the shard on which each of up to MaxBatch ids is known. It does not search the shard except; -1: it
// searches all.
func (r *Router) findKnown(ctx context.Context, refs []job.Ref, except int) (map[job.Ref]int, error) {
	results, err := r.statuses(ctx, refs, except)
	if err != nil {
		return nil, err
	}
	known := make(map[job.Ref]int)
	for n, ofShard := range results {
		for i, status := range ofShard {
			if status.Known() {
				known[refs[i]] = n
			}
		}
	}
	return known, nil
}

// statuses returns what each shard but except knows of up to MaxBatch ids.
func (r *Router) statuses(ctx context.Context, refs []job.Ref, except int) ([][]store.IDStatus, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	results := make([][]store.IDStatus, len(r.shards))
	err := r.ForEachShard(func(n int, _ store.Shard) (err error) {
		if n != except {
			results[n], err = r.known[n].do(ctx, refs)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for known ids: %w", err)
	}
	return results, nil
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
	err := r.ForEachShard(func(n int, shard store.Shard) error {
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
