package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
)

// insertTimeout bounds one joined Insert, whose callers may all have gone.
const insertTimeout = 10 * time.Second

// insertBytes bounds the bodies of one joined Insert. A single job always fits.
const insertBytes = 8 << 20

// weigh is about what an entry takes on its way.
func weigh(e NewJob) int { return 512 + len(e.URL) + len(e.Body) }

// portion is how many of the entries fit into one Insert, at least 1.
func portion(entries []NewJob) int {
	bytes := 0
	for i, e := range entries {
		if bytes += weigh(e); i > 0 && (i == MaxBatch || bytes > insertBytes) {
			return i
		}
	}
	return len(entries)
}

// Router finds the shard for a queue or a job, joins concurrent insertions into few calls, and adds up what is asked of
// all shards.
type Router struct {
	shards  []Shard
	inserts []*Batcher[NewJob, RoutedResult]
	known   []*Batcher[job.Ref, idKnown]
}

// idKnown is the answer to whether an id is known on a shard.
type idKnown struct {
	yes bool
	err error
}

// RoutedResult is the result of one routed insertion: InsertResult holds when Err is nil.
type RoutedResult struct {
	InsertResult
	Err error
}

// NewRouter makes a Router over s.
func NewRouter(s Store) *Router {
	r := &Router{shards: s.Shards()}
	for shard := range r.shards {
		r.inserts = append(r.inserts, NewBatcher(MaxBatch, insertBytes, weigh, func(entries []NewJob) []RoutedResult {
			return r.insertShard(shard, entries)
		}))
		r.known = append(r.known, NewBatcher(MaxBatch, 0, nil, func(refs []job.Ref) []idKnown {
			return r.knownShard(shard, refs)
		}))
	}
	return r
}

// Shards are the store's.
func (r *Router) Shards() []Shard { return r.shards }

// ShardOf is the number of a queue's shard, by its name alone.
func (r *Router) ShardOf(q job.Queue) int { return jump(q.String(), len(r.shards)) }

// ShardOfTopic is the number of the shard that keeps the rate and the alarms of a topic.
func (r *Router) ShardOfTopic(namespace, topic string) int {
	return ShardOfTopic(len(r.shards), namespace, topic)
}

// ShardOfTopic is Router.ShardOfTopic, given the number of shards.
func ShardOfTopic(shards int, namespace, topic string) int { return jump(namespace+"/"+topic, shards) }

// Insert registers jobs on their shards and answers one result for each, in order. Across the queues of a sharded
// store, an id that a client chose is checked, not locked: two registrations of one id for different queues at the same
// moment may both succeed.
func (r *Router) Insert(ctx context.Context, entries []NewJob) []RoutedResult {
	results := make([]RoutedResult, len(entries))
	if len(r.shards) == 1 {
		for start := 0; start < len(entries); {
			n := portion(entries[start:])
			copy(results[start:], r.join(ctx, 0, entries[start:start+n]))
			start += n
		}
		return results
	}
	byShard := make([][]int, len(r.shards))
	for i, e := range entries {
		s := r.ShardOf(e.Queue)
		byShard[s] = append(byShard[s], i)
	}
	var wg sync.WaitGroup
	for shard, indexes := range byShard {
		if len(indexes) == 0 {
			continue
		}
		wg.Go(func() { r.insertRouted(ctx, shard, entries, indexes, results) })
	}
	wg.Wait()
	return results
}

// insertRouted inserts the entries of one shard, after a look at the other shards for ids that clients chose.
// The ids of jobs that Ringback makes itself need none: each is made for one queue.
func (r *Router) insertRouted(ctx context.Context, shard int, entries []NewJob, indexes []int, results []RoutedResult) {
	for start := 0; start < len(indexes); start += MaxBatch {
		part := indexes[start:min(start+MaxBatch, len(indexes))]
		elsewhere, err := r.elsewhere(ctx, shard, entries, part)
		if err != nil {
			for _, i := range part {
				results[i].Err = err
			}
			continue
		}
		mine := make([]NewJob, 0, len(part))
		at := make([]int, 0, len(part))
		for _, i := range part {
			if other, known := elsewhere[entries[i].Ref()]; known {
				results[i] = r.insertKnown(ctx, other, entries[i])
				continue
			}
			mine, at = append(mine, entries[i]), append(at, i)
		}
		for len(mine) > 0 {
			n := portion(mine)
			for k, res := range r.join(ctx, shard, mine[:n]) {
				results[at[k]] = res
			}
			mine, at = mine[n:], at[n:]
		}
	}
}

// insertKnown inserts an entry whose id is known on another shard. The same request may have led to another lane before,
// when its topic's URL was another: then it is sent to where its job is, which tells it from another request.
func (r *Router) insertKnown(ctx context.Context, shard int, e NewJob) RoutedResult {
	found, err := r.shards[shard].Get(ctx, e.Ref())
	if err != nil && !errors.Is(err, ErrNotFound) {
		return RoutedResult{Err: fmt.Errorf("insert jobs: %w", err)}
	}
	if err != nil || found.Topic != e.Topic {
		return RoutedResult{InsertResult: InsertResult{Outcome: Conflict, Job: job.Job{Spec: e.Spec}}}
	}
	e.Queue = found.Queue
	return r.join(ctx, shard, []NewJob{e})[0]
}

// elsewhere tells on which other shard ids that clients chose are known.
func (r *Router) elsewhere(ctx context.Context, home int, entries []NewJob, indexes []int) (map[job.Ref]int, error) {
	var refs []job.Ref
	for _, i := range indexes {
		if entries[i].Fingerprint != nil && entries[i].Kind == "" {
			refs = append(refs, entries[i].Ref())
		}
	}
	return r.lookUp(ctx, refs, home)
}

// KnownOnAny answers for each id whether any shard knows it, as Store.Known does for one.
func (r *Router) KnownOnAny(ctx context.Context, refs []job.Ref) ([]bool, error) {
	known := make([]bool, 0, len(refs))
	for part := range slices.Chunk(refs, MaxBatch) {
		on, err := r.lookUp(ctx, part, -1)
		if err != nil {
			return nil, err
		}
		for _, ref := range part {
			_, yes := on[ref]
			known = append(known, yes)
		}
	}
	return known, nil
}

// lookUp tells on which shard ids are known, at most MaxBatch. It leaves out the shard home; none when it is negative.
func (r *Router) lookUp(ctx context.Context, refs []job.Ref, home int) (map[job.Ref]int, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	found := make([][]idKnown, len(r.shards))
	err := r.each(func(shard int) (err error) {
		if shard != home {
			found[shard], err = r.known[shard].Do(ctx, refs)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for known ids: %w", err)
	}
	known := make(map[job.Ref]int)
	for shard, hits := range found {
		for i, hit := range hits {
			if hit.err != nil {
				return nil, fmt.Errorf("look for known ids: %w", hit.err)
			}
			if hit.yes {
				known[refs[i]] = shard
			}
		}
	}
	return known, nil
}

// join hands entries of one shard to its batcher.
func (r *Router) join(ctx context.Context, shard int, entries []NewJob) []RoutedResult {
	results, err := r.inserts[shard].Do(ctx, entries)
	if err == nil {
		return results
	}
	results = make([]RoutedResult, len(entries))
	for i := range results {
		results[i].Err = fmt.Errorf("insert jobs: %w", err)
	}
	return results
}

// insertShard is one joined call. Its context is its own: the callers' belong to many requests.
func (r *Router) insertShard(shard int, entries []NewJob) []RoutedResult {
	ctx, cancel := context.WithTimeout(context.Background(), insertTimeout)
	defer cancel()
	results := make([]RoutedResult, len(entries))
	inserted, err := r.shards[shard].Insert(ctx, NewToken(), entries)
	for i := range results {
		if err != nil {
			results[i].Err = fmt.Errorf("insert jobs: %w", away(ctx, err))
			continue
		}
		results[i].InsertResult = inserted[i]
	}
	return results
}

// away says of a call whose own time ran out that the store is unavailable: no caller's context has ended.
func away(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, ErrUnavailable) {
		return err
	}
	return &UnavailableError{Reason: "the store did not answer in time", Err: err}
}

// knownShard is one joined look for ids.
func (r *Router) knownShard(shard int, refs []job.Ref) []idKnown {
	ctx, cancel := context.WithTimeout(context.Background(), insertTimeout)
	defer cancel()
	results := make([]idKnown, len(refs))
	known, err := r.shards[shard].Known(ctx, refs)
	for i := range results {
		if err != nil {
			results[i].err = away(ctx, err)
			continue
		}
		results[i].yes = known[i]
	}
	return results
}

// Get reads a job with its record, wherever it is. ErrNotFound.
func (r *Router) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	_, found, err := r.locate(ctx, ref)
	return found, err
}

// Cancel is Store.Cancel, wherever the job is.
func (r *Router) Cancel(ctx context.Context, ref job.Ref) (job.Job, error) {
	return r.at(ctx, ref, func(s Shard, token Token) (job.Job, error) {
		return s.Cancel(ctx, token, ref)
	})
}

// Edit is Store.Edit, wherever the job is.
func (r *Router) Edit(ctx context.Context, ref job.Ref, edit Edit) (job.Job, error) {
	return r.at(ctx, ref, func(s Shard, token Token) (job.Job, error) {
		return s.Edit(ctx, token, ref, edit)
	})
}

// at calls do on the job's shard.
func (r *Router) at(ctx context.Context, ref job.Ref, do func(Shard, Token) (job.Job, error)) (job.Job, error) {
	shard := 0
	if len(r.shards) > 1 {
		var err error
		if shard, _, err = r.locate(ctx, ref); err != nil {
			return job.Job{}, err
		}
	}
	return do(r.shards[shard], NewToken())
}

// locate finds a job: first on the shard that its id may name, then on all of them at once.
func (r *Router) locate(ctx context.Context, ref job.Ref) (int, job.Job, error) {
	first, named := job.ShardOf(ref.ID)
	if len(r.shards) == 1 {
		first, named = 0, true
	}
	if named && first < len(r.shards) {
		found, err := r.shards[first].Get(ctx, ref)
		if len(r.shards) == 1 || !errors.Is(err, ErrNotFound) {
			return first, found, err
		}
	}
	var mu sync.Mutex
	at, hit := len(r.shards), job.Job{}
	err := r.each(func(shard int) error {
		found, err := r.shards[shard].Get(ctx, ref)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if shard < at { // so that an id on two shards always names the same job
			at, hit = shard, found
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

// each calls do for all shards at once and joins what goes wrong.
func (r *Router) each(do func(shard int) error) error {
	errs := make([]error, len(r.shards))
	var wg sync.WaitGroup
	for shard := range r.shards {
		wg.Go(func() { errs[shard] = do(shard) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ErrCursor: the cursor is not one that List gave.
var ErrCursor = errors.New("the cursor is not one that a list gave")

// List reads one page over all shards, shard after shard.
func (r *Router) List(ctx context.Context, filter Filter) (Page, error) {
	shard := 0
	if filter.Cursor != "" {
		number, inner, ok := strings.Cut(filter.Cursor, ".")
		at, err := strconv.Atoi(number)
		if !ok || err != nil || at < 0 || at >= len(r.shards) {
			return Page{}, ErrCursor
		}
		shard, filter.Cursor = at, inner
	}
	if filter.Lane != "" {
		shard = r.ShardOf(job.Queue{Namespace: filter.Namespace, Topic: filter.Topic, Lane: filter.Lane})
	}
	page, err := r.shards[shard].List(ctx, filter)
	for err == nil && len(page.Jobs) == 0 && page.Cursor == "" && filter.Lane == "" && shard+1 < len(r.shards) {
		// Most shards have nothing of a topic with few lanes; a first page that is empty would look like the whole answer.
		shard, filter.Cursor = shard+1, ""
		page, err = r.shards[shard].List(ctx, filter)
	}
	if err != nil {
		return Page{}, err
	}
	switch {
	case page.Cursor != "":
		page.Cursor = strconv.Itoa(shard) + "." + page.Cursor
	case filter.Lane == "" && shard+1 < len(r.shards):
		page.Cursor = strconv.Itoa(shard+1) + "."
	}
	return page, nil
}
