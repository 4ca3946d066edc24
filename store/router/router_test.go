package router_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/storetest"
)

const shards = 8

func sharded(t *testing.T) (*router.Router, store.Store) {
	t.Helper()
	model := storetest.NewModel(storetest.ModelOptions{Shards: shards})
	t.Cleanup(func() { require.NoError(t, model.Close()) })
	return router.New(model), model
}

func entry(id, topic, lane string) store.NewJob {
	var e store.NewJob
	e.ID, e.URL, e.Method = id, "https://x.example/", "POST"
	e.Queue = job.Queue{Namespace: "default", Topic: topic, Lane: lane}
	e.Delay = time.Hour
	return e
}

func TestShardOf_SpreadsQueuesEvenlyAndMovesFewWhenAShardIsAdded(t *testing.T) {
	eight, _ := sharded(t)
	nine := router.New(storetest.NewModel(storetest.ModelOptions{Shards: shards + 1}))
	const queues = 9000
	counts, moved := make([]int, shards), 0
	for i := range queues {
		q := job.Queue{Namespace: "default", Topic: "orders", Lane: fmt.Sprintf("host-%d.example:443", i)}
		before, after := eight.ShardOf(q), nine.ShardOf(q)
		counts[before]++
		if before != after {
			moved++
			require.Equal(t, shards, after, "a queue moves to the new shard or stays")
		}
	}
	for _, n := range counts {
		require.InDelta(t, queues/shards, n, 150)
	}
	require.InDelta(t, queues/(shards+1), moved, 150)
}

func TestShardOf_NeverChanges(t *testing.T) {
	r, _ := sharded(t)
	// Data already stored depends on these: a change of the hash would lose every job. The numbers come from the
	// paper's algorithm and FNV-1a written out in another language.
	frozen := map[string]int{"a": 2, "b": 7, "shop.example:443": 0, "customer-42": 4}
	got := map[string]int{}
	for lane := range frozen {
		got[lane] = r.ShardOf(job.Queue{Namespace: "default", Topic: "orders", Lane: lane})
	}
	require.Equal(t, frozen, got)
}

func TestRouterGet_FindsAJobOnAnyShard(t *testing.T) {
	r, _ := sharded(t)
	for i := range 40 {
		chosen := entry(fmt.Sprintf("mine-%d", i), "orders", fmt.Sprintf("lane-%d", i))
		chosen.Fingerprint = codec.Fingerprint(&chosen.New)
		made := entry("", "orders", fmt.Sprintf("lane-%d", i))
		made.ID = job.NewID(time.Now(), r.ShardOf(made.Queue))
		// An id that looks as if it were made on another shard.
		posing := entry(job.NewID(time.Now(), (r.ShardOf(made.Queue)+1)%shards), "orders", fmt.Sprintf("lane-%d", i))
		for _, e := range []store.NewJob{chosen, made, posing} {
			got := r.Insert(t.Context(), []store.NewJob{e})[0]
			require.NoError(t, got.Err)
			found, err := r.Get(t.Context(), e.Ref())
			require.NoError(t, err)
			require.Equal(t, e.Lane, found.Lane)
			_, err = r.Replace(t.Context(), e.Ref(), store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}})
			require.NoError(t, err)
			_, err = r.Replace(t.Context(), e.Ref(),
				store.Replacement{Kind: job.EventEdited, IfVersion: 2, Spec: &found.Spec})
			require.NoError(t, err)
			cancelled, err := r.Cancel(t.Context(), e.Ref(), store.Cancellation{})
			require.NoError(t, err)
			require.Equal(t, job.Cancelled, cancelled.State)
			revived := r.Revive(t.Context(), []store.Revival{{Ref: e.Ref(), Delay: time.Hour}})
			require.NoError(t, revived[0].Err)
			require.Equal(t, e.Lane, revived[0].Job.Lane)
		}
	}
	_, err := r.Get(t.Context(), job.Ref{Namespace: "default", ID: "nobody"})
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = r.Cancel(t.Context(), job.Ref{Namespace: "default", ID: "nobody"}, store.Cancellation{})
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestRouterList_SkipsShardsWithoutJobs(t *testing.T) {
	r, _ := sharded(t)
	for lane := range 40 { // wherever it is
		e := entry(fmt.Sprintf("job-%d", lane), fmt.Sprintf("topic-%d", lane), fmt.Sprintf("lane-%d", lane))
		require.NoError(t, r.Insert(t.Context(), []store.NewJob{e})[0].Err)
		page, err := r.List(t.Context(), store.Filter{Namespace: "default", Topic: e.Topic, Limit: 7})
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1)
	}
	page, err := r.List(t.Context(), store.Filter{Namespace: "default", Topic: "nothing", Limit: 7})
	require.NoError(t, err)
	require.Equal(t, store.Page{}, page)
}

// listLanes reads all pages of a list, and returns the lanes of its jobs. No job is on two pages.
func listLanes(t *testing.T, r *router.Router, f store.Filter) (lanes []string) {
	t.Helper()
	f.Namespace = "default"
	seen := map[string]bool{}
	for more := true; more; {
		page, err := r.List(t.Context(), f)
		require.NoError(t, err)
		require.True(t, len(page.Jobs) == f.Limit || !page.More || f.ScanLimit > 0, "a page of %d", len(page.Jobs))
		for _, j := range page.Jobs {
			require.False(t, seen[j.ID], j.ID)
			seen[j.ID] = true
			lanes = append(lanes, j.Lane)
		}
		f.After, more = page.Reached, page.More
	}
	return lanes
}

func TestRouterList_ShowsJobsOfOneMillisecondOnAllShardsOnce(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := router.New(storetest.NewModel(storetest.ModelOptions{Shards: shards, Now: func() time.Time { return at }}))
	for i := range 60 {
		e := entry(fmt.Sprintf("job-%d", i), "orders", fmt.Sprintf("lane-%d", i%20))
		require.NoError(t, r.Insert(t.Context(), []store.NewJob{e})[0].Err)
		_, err := r.Cancel(t.Context(), e.Ref(), store.Cancellation{})
		require.NoError(t, err)
		if i%30 == 0 {
			at = at.Add(time.Millisecond)
		}
	}
	for _, oldest := range []bool{false, true} {
		for _, limit := range []int{1, 7, 500} {
			require.Len(t, listLanes(t, r, store.Filter{Limit: limit, Oldest: oldest}), 60)
			require.Len(t, listLanes(t, r, store.Filter{Limit: limit, Oldest: oldest, ScanLimit: 2}), 60)
		}
	}
}

func TestRouterList_ShowsEachJobOfAllShardsOnce(t *testing.T) {
	r, _ := sharded(t)
	var entries []store.NewJob
	for i := range 300 {
		entries = append(entries, entry(fmt.Sprintf("job-%d", i), "orders", fmt.Sprintf("lane-%d", i%30)))
	}
	for _, got := range r.Insert(t.Context(), entries) {
		require.NoError(t, got.Err)
	}
	for _, limit := range []int{7, 500} {
		lanes := listLanes(t, r, store.Filter{Limit: limit})
		require.Len(t, lanes, 300)
		require.True(t, slices.IsSorted(lanes), "the lanes of all shards are in order")
		require.Len(t, listLanes(t, r, store.Filter{Limit: limit, ScanLimit: 5}), 300)
		require.Len(t, listLanes(t, r, store.Filter{Limit: limit, Topic: "orders", Lane: "lane-3"}), 10)
		require.Len(t, listLanes(t, r, store.Filter{Limit: limit, Lane: "lane-3"}), 10)
	}

	stats, err := r.TopicStats(t.Context(), store.StatsFilter{Namespace: "default", Limit: store.MaxBatch})
	require.NoError(t, err)
	require.Len(t, stats, 1)
	require.EqualValues(t, 300, stats[0].Registered)
	lanes, err := r.LaneStats(t.Context(), "default", "orders", "lane-1", 5)
	require.NoError(t, err)
	var names []string
	for _, l := range lanes {
		names = append(names, l.Lane)
		require.EqualValues(t, 10, l.Scheduled)
	}
	require.Equal(t, []string{"lane-10", "lane-11", "lane-12", "lane-13", "lane-14"}, names)
}

// An outbox job's id is generated for one queue, so no other shard is asked for it.
func TestRouterInsert_NeedsOnlyItsOwnShardForAnOutboxJob(t *testing.T) {
	r, a := newUnavailable(t, shards)
	a.known = true
	outboxJob := entry("rb:callback", job.CallbackTopic, "l")
	outboxJob.Kind, outboxJob.Fingerprint = job.KindCallback, codec.Fingerprint(&outboxJob.New)
	a.shard = (r.ShardOf(outboxJob.Queue) + 1) % shards
	for _, want := range []store.Outcome{store.Created, store.Existing} {
		got := r.Insert(t.Context(), []store.NewJob{outboxJob})[0]
		require.NoError(t, got.Err)
		require.Equal(t, want, got.Outcome)
	}
	chosen := entry("mine", "orders", "l")
	chosen.Fingerprint = codec.Fingerprint(&chosen.New)
	a.shard = (r.ShardOf(chosen.Queue) + 1) % shards
	require.ErrorIs(t, r.Insert(t.Context(), []store.NewJob{chosen})[0].Err,
		store.ErrUnavailable, "it may be known there")
}

func TestRouterInsert_SplitsMoreJobsThanACallHolds(t *testing.T) {
	for _, n := range []int{1, shards} {
		r := router.New(storetest.NewModel(storetest.ModelOptions{Shards: n}))
		var entries []store.NewJob
		for i := range 5*store.MaxBatch + 3 {
			e := entry(fmt.Sprintf("job-%d", i), "orders", fmt.Sprintf("lane-%d", i%3))
			e.Fingerprint = codec.Fingerprint(&e.New)
			entries = append(entries, e)
		}
		for i, got := range r.Insert(t.Context(), entries) {
			require.NoError(t, got.Err)
			require.Equal(t, entries[i].ID, got.Job.ID, "results are in order")
		}
	}
}

func TestRouterInsert_FailsEachJobWhenTheStoreIsUnavailable(t *testing.T) {
	model := storetest.NewModel(storetest.ModelOptions{})
	r := router.New(storetest.Faulty(model, func(string) storetest.Fault { return storetest.Before }))
	for _, got := range r.Insert(t.Context(), []store.NewJob{entry("a", "t", "l"), entry("b", "t", "l")}) {
		require.ErrorIs(t, got.Err, store.ErrUnavailable)
	}
}

func TestRouterInsert_ReturnsTheCauseOfTheCallersContext(t *testing.T) {
	r, _ := sharded(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client has gone")
	cancel(gone)
	got := r.Insert(ctx, []store.NewJob{entry("a", "t", "l")})[0]
	if got.Err != nil { // it may have been taken before anybody looked
		require.ErrorIs(t, got.Err, gone)
	}
}

func TestRouterInsert_CreatesOneJobForConcurrentRegistrationsOfOneID(t *testing.T) {
	r, _ := sharded(t)
	e := entry("only", "orders", "a")
	e.Fingerprint = codec.Fingerprint(&e.New)
	var mu sync.Mutex
	outcomes := map[store.Outcome]int{}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			got := r.Insert(t.Context(), []store.NewJob{e})[0]
			mu.Lock()
			defer mu.Unlock()
			outcomes[got.Outcome]++
		})
	}
	all.Wait()
	require.Equal(t, map[store.Outcome]int{store.Created: 1, store.Existing: 49}, outcomes)
}

// hung is a store whose Insert never returns.
type hung struct{ store.Store }

func (h hung) Shards() []store.Shard {
	return storetest.WrapShards(h.Store, func(_ int, next store.Shard) store.Shard { return hungShard{next, h} })
}

type hungShard struct {
	store.Shard
	hung
}

func (hungShard) Insert(ctx context.Context, _ store.Token, _ []store.NewJob) ([]store.InsertResult, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestRouterInsert_IsUnavailableWhenTheStoreDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := router.New(hung{storetest.NewModel(storetest.ModelOptions{})})
		got := r.Insert(t.Context(), []store.NewJob{entry("a", "t", "l")})[0]
		require.ErrorIs(t, got.Err, store.ErrUnavailable)
	})
}
