package store

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/ringback/ringback/job"
)

// Router offers the methods of a shard for all shards of a store: it selects the shard of a queue or of a job, combines
// concurrent insertions into few calls, and adds up counts.
type Router struct {
	settings Settings
	shards   []Shard
	inserts  []*Batcher[NewJob, RoutedResult]
	known    []*Batcher[job.Ref, knownResult]
}

// NewRouter returns a Router over the shards of s.
func NewRouter(s Store) *Router {
	r := &Router{settings: s, shards: s.Shards()}
	for _, shard := range r.shards {
		r.inserts = append(r.inserts, NewBatcher(MaxBatch, insertBytes, estimateSize, func(jobs []NewJob) []RoutedResult {
			return insertBatch(shard, jobs)
		}))
		r.known = append(r.known, NewBatcher(MaxBatch, 0, nil, func(refs []job.Ref) []knownResult {
			return knownBatch(shard, refs)
		}))
	}
	return r
}

// Shards returns the store's shards.
func (r *Router) Shards() []Shard { return r.shards }

// ShardOf returns the number of the shard that stores the jobs of a queue. It depends on the queue's name alone.
func (r *Router) ShardOf(q job.Queue) int { return jump(q.String(), len(r.shards)) }

// ShardOfTopic returns the number of the shard that keeps the permits and the alarm of a topic.
func (r *Router) ShardOfTopic(namespace, topic string) int {
	return ShardOfTopic(len(r.shards), namespace, topic)
}

// ShardOfTopic is Router.ShardOfTopic for a number of shards.
func ShardOfTopic(shards int, namespace, topic string) int { return jump(namespace+"/"+topic, shards) }

// Get is Jobs.Get on the job's shard.
func (r *Router) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	_, found, err := r.locate(ctx, ref)
	return found, err
}

// Cancel is Jobs.Cancel on the job's shard.
func (r *Router) Cancel(ctx context.Context, ref job.Ref) (job.Job, error) {
	shard, err := r.shardOfJob(ctx, ref)
	if err != nil {
		return job.Job{}, err
	}
	return shard.Cancel(ctx, NewToken(), ref)
}

// Replace is Jobs.Replace on the job's shard. A Spec names the job's queue and so its shard.
func (r *Router) Replace(ctx context.Context, ref job.Ref, replacement Replacement) (job.Job, error) {
	if spec := replacement.Spec; spec != nil {
		return r.shards[r.ShardOf(spec.Queue)].Replace(ctx, NewToken(), ref, replacement)
	}
	shard, err := r.shardOfJob(ctx, ref)
	if err != nil {
		return job.Job{}, err
	}
	return shard.Replace(ctx, NewToken(), ref, replacement)
}

// shardOfJob returns the shard that stores a job. ErrNotFound.
func (r *Router) shardOfJob(ctx context.Context, ref job.Ref) (Shard, error) {
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
		if found, err := r.shards[n].Get(ctx, ref); !errors.Is(err, ErrNotFound) {
			return n, found, err
		}
	}
	var mu sync.Mutex
	at, hit := len(r.shards), job.Job{}
	err := r.forEachShard(func(n int, shard Shard) error {
		found, err := shard.Get(ctx, ref)
		if errors.Is(err, ErrNotFound) {
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
	return 0, job.Job{}, ErrNotFound
}

// forEachShard calls do for all shards concurrently and joins the errors.
func (r *Router) forEachShard(do func(n int, shard Shard) error) error {
	errs := make([]error, len(r.shards))
	var wg sync.WaitGroup
	for n, shard := range r.shards {
		wg.Go(func() { errs[n] = do(n, shard) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ErrCursor: the cursor was not returned by List.
var ErrCursor = errors.New("the cursor is not one that a list gave")

// List reads one page over all shards, one shard after the other.
func (r *Router) List(ctx context.Context, filter Filter) (Page, error) {
	n := 0
	if filter.Cursor != "" {
		number, inner, ok := strings.Cut(filter.Cursor, ".")
		at, err := strconv.Atoi(number)
		if !ok || err != nil || at < 0 || at >= len(r.shards) {
			return Page{}, ErrCursor
		}
		n, filter.Cursor = at, inner
	}
	if filter.Lane != "" {
		n = r.ShardOf(job.Queue{Namespace: filter.Namespace, Topic: filter.Topic, Lane: filter.Lane})
	}
	page, err := r.shards[n].List(ctx, filter)
	for err == nil && len(page.Jobs) == 0 && page.Cursor == "" && filter.Lane == "" && n+1 < len(r.shards) {
		// A topic with few lanes has no jobs on most shards. An empty first page would look like the end of the list.
		n, filter.Cursor = n+1, ""
		page, err = r.shards[n].List(ctx, filter)
	}
	if err != nil {
		return Page{}, err
	}
	switch {
	case page.Cursor != "":
		page.Cursor = strconv.Itoa(n) + "." + page.Cursor
	case filter.Lane == "" && n+1 < len(r.shards):
		page.Cursor = strconv.Itoa(n+1) + "."
	}
	return page, nil
}
