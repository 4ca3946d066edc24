package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// insertBytes bounds the estimated size of one combined Insert. A single job always fits.
const insertBytes = 8 << 20

// estimateSize returns about how many bytes a job takes in an Insert.
func estimateSize(n store.NewJob) int { return 512 + len(n.URL) + len(n.Body) }

// batchLen returns how many of the jobs, from the first, fit into one Insert: at least 1.
func batchLen(jobs []store.NewJob) int {
	size := 0
	for i, n := range jobs {
		if size += estimateSize(n); i > 0 && (i == store.MaxBatch || size > insertBytes) {
			return i
		}
	}
	return len(jobs)
}

// Insert registers any number of jobs on their shards and returns one result for each, in order. With several shards
// nothing locks an id that a client chose: two concurrent registrations of it for different queues may both succeed.
func (r *Router) Insert(ctx context.Context, jobs []store.NewJob) []store.RoutedResult {
	results := make([]store.RoutedResult, len(jobs))
	if len(r.shards) == 1 {
		for start := 0; start < len(jobs); {
			n := batchLen(jobs[start:])
			copy(results[start:], r.enqueue(ctx, 0, jobs[start:start+n]))
			start += n
		}
		return results
	}
	byShard := make([][]int, len(r.shards))
	for i, j := range jobs {
		n := r.ShardOf(j.Queue)
		byShard[n] = append(byShard[n], i)
	}
	var wg sync.WaitGroup
	for n, indexes := range byShard {
		if len(indexes) > 0 {
			wg.Go(func() { r.insertOn(ctx, n, jobs, indexes, results) })
		}
	}
	wg.Wait()
	return results
}

// insertOn inserts the jobs of one shard, after it has searched the other shards for ids that clients chose. It does
// not search for ids that Ringback generates, since each of them is made for one queue.
func (r *Router) insertOn(
	ctx context.Context, n int, jobs []store.NewJob, indexes []int, results []store.RoutedResult,
) {
	for part := range slices.Chunk(indexes, store.MaxBatch) {
		var chosen []job.Ref
		for _, i := range part {
			if jobs[i].Fingerprint != nil && jobs[i].Kind == "" {
				chosen = append(chosen, jobs[i].Ref())
			}
		}
		others, err := r.findKnown(ctx, chosen, n)
		if err != nil {
			for _, i := range part {
				results[i].Err = err
			}
			continue
		}
		mine := make([]store.NewJob, 0, len(part))
		at := make([]int, 0, len(part))
		for _, i := range part {
			if other, known := others[jobs[i].Ref()]; known {
				results[i] = r.insertKnown(ctx, other, jobs[i])
				continue
			}
			mine, at = append(mine, jobs[i]), append(at, i)
		}
		for len(mine) > 0 {
			size := batchLen(mine)
			for k, result := range r.enqueue(ctx, n, mine[:size]) {
				results[at[k]] = result
			}
			mine, at = mine[size:], at[size:]
		}
	}
}

// insertKnown inserts a job whose id is known on another shard. The same request may have led to another lane before,
// when its topic had another URL. It is then sent to the shard of the known job, which compares the fingerprints.
func (r *Router) insertKnown(ctx context.Context, n int, j store.NewJob) store.RoutedResult {
	found, err := r.shards[n].Get(ctx, j.Ref())
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.RoutedResult{Err: fmt.Errorf("insert jobs: %w", err)}
	}
	if err != nil { // only the id is remembered
		found = job.Job{Spec: j.Spec}
	}
	if err != nil || found.Topic != j.Topic {
		found.History = nil
		return store.RoutedResult{InsertResult: store.InsertResult{Outcome: store.Conflict, Job: found}}
	}
	j.Queue = found.Queue
	return r.enqueue(ctx, n, []store.NewJob{j})[0]
}

// enqueue passes jobs of one shard to its batcher and waits for the results.
func (r *Router) enqueue(ctx context.Context, n int, jobs []store.NewJob) []store.RoutedResult {
	inserted, err := r.inserts[n].do(ctx, jobs)
	results := make([]store.RoutedResult, len(jobs))
	for i := range results {
		if err != nil {
			results[i].Err = fmt.Errorf("insert jobs: %w", err)
		} else {
			results[i].InsertResult = inserted[i]
		}
	}
	return results
}
