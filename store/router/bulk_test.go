package router_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/storetest"
)

// unavailable is a store with an unavailable shard, whose calls fail before they take effect; a negative shard: none
// is.
type unavailable struct {
	store.Store
	shard int
	known bool // Known fails, too
}

func (a *unavailable) Shards() []store.Shard {
	return storetest.WrapShards(a.Store,
		func(n int, next store.Shard) store.Shard { return unavailableShard{next, a, n} })
}

type unavailableShard struct {
	store.Shard
	*unavailable
	number int
}

func (a *unavailable) fault(shard int) error {
	if shard == a.shard {
		return &store.UnavailableError{Reason: "the shard is unavailable"}
	}
	return nil
}

func (a unavailableShard) Known(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error) {
	if err := a.fault(a.number); err != nil && a.known {
		return nil, err
	}
	return a.Shard.Known(ctx, refs)
}

func (a unavailableShard) Revive(
	ctx context.Context, token store.Token, items []store.Revival,
) ([]store.ReviveResult, error) {
	if err := a.fault(a.number); err != nil {
		return nil, err
	}
	return a.Shard.Revive(ctx, token, items)
}

func (a unavailableShard) Purge(ctx context.Context, token store.Token, items []store.Removal) ([]error, error) {
	if err := a.fault(a.number); err != nil {
		return nil, err
	}
	return a.Shard.Purge(ctx, token, items)
}

func (a unavailableShard) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	if err := a.fault(a.number); err != nil {
		return nil, err
	}
	return a.Shard.GetDocuments(ctx, keys)
}

// newUnavailable returns a Router over a model with a number of shards, of which one can be made unavailable.
func newUnavailable(t *testing.T, shards int) (*router.Router, *unavailable) {
	t.Helper()
	model := storetest.NewModel(storetest.ModelOptions{Shards: shards})
	t.Cleanup(func() { require.NoError(t, model.Close()) })
	a := &unavailable{Store: model, shard: -1}
	return router.New(a), a
}

// onShards runs a test with one shard and with eight.
func onShards(t *testing.T, test func(t *testing.T, r *router.Router, a *unavailable)) {
	t.Helper()
	for _, n := range []int{1, shards} {
		t.Run(fmt.Sprintf("shards=%d", n), func(t *testing.T) {
			r, a := newUnavailable(t, n)
			test(t, r, a)
		})
	}
}

// insertDead inserts n jobs on several lanes, lets them die and returns their ids.
func insertDead(t *testing.T, r *router.Router, s store.Store, n int) []job.Ref {
	t.Helper()
	_, err := store.PutTopic(t.Context(), s,
		store.Topic{Namespace: "default", Name: "orders", Policy: policy.Topic{LaneConcurrency: 10_000}})
	require.NoError(t, err)
	var entries []store.NewJob
	var refs []job.Ref
	queues := make(map[job.Queue]bool)
	for i := range n {
		e := entry(fmt.Sprintf("job-%d", i), "orders", fmt.Sprintf("lane-%d", i%20))
		e.Delay = 0
		e.Fingerprint = codec.Fingerprint(&e.New)
		entries, refs = append(entries, e), append(refs, e.Ref())
		queues[e.Queue] = true
	}
	for _, got := range r.Insert(t.Context(), entries) {
		require.NoError(t, got.Err)
	}
	for q := range queues {
		request := store.ClaimRequest{Max: store.MaxBatch, MaxBytes: 1 << 20}
		request.Queues = []store.QueueClaim{{Queue: q, Max: store.MaxBatch, Timeout: time.Hour}}
		claimed, err := r.Shards()[r.ShardOf(q)].Claim(t.Context(), store.NewToken(), request)
		require.NoError(t, err)
		var items []store.Settlement
		for _, h := range claimed.Jobs {
			verdict := policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted}
			items = append(items, store.Settlement{Ref: h.Ref(), Queue: q, Lease: h.Lease, Verdict: verdict})
		}
		_, _, err = r.Shards()[r.ShardOf(q)].Settle(t.Context(), store.NewToken(), items, nil)
		require.NoError(t, err)
	}
	return refs
}

func TestRouterFind_ReturnsTheShardOfAnyNumberOfJobs(t *testing.T) {
	onShards(t, func(t *testing.T, r *router.Router, a *unavailable) {
		refs := insertDead(t, r, a, 2*store.MaxBatch+7)
		at, err := r.Find(t.Context(), refs)
		require.NoError(t, err)
		for i, shard := range at {
			require.Equal(t,
				r.ShardOf(job.Queue{Namespace: "default", Topic: "orders", Lane: fmt.Sprintf("lane-%d", i%20)}), shard)
		}
		at, err = r.Find(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, at)
		if len(r.Shards()) > 1 {
			at, err = r.Find(t.Context(), []job.Ref{refs[0], {Namespace: "default", ID: "nobody"}})
			require.NoError(t, err)
			require.Equal(t, -1, at[1])
			require.NotEqual(t, -1, at[0])
		}
	})
}

// Two concurrent registrations of one id may both succeed, on two shards.
func TestRouterFind_IsStableForAnIdOnTwoShards(t *testing.T) {
	r, _ := newUnavailable(t, shards)
	lanes := make(map[int]string) // one for each shard
	for i := 0; len(lanes) < shards; i++ {
		lane := fmt.Sprintf("lane-%d", i)
		lanes[r.ShardOf(job.Queue{Namespace: "default", Topic: "orders", Lane: lane})] = lane
	}
	named := job.NewID(time.Now(), 5)
	for id, want := range map[string]int{"mine": 1, named: 5} {
		for _, shard := range []int{1, 3, 5, 7} {
			e := entry(id, "orders", lanes[shard])
			_, err := r.Shards()[shard].Insert(t.Context(), store.NewToken(), []store.NewJob{e})
			require.NoError(t, err)
		}
		ref := job.Ref{Namespace: "default", ID: id}
		for range 50 {
			at, err := r.Find(t.Context(), []job.Ref{ref})
			require.NoError(t, err)
			require.Equal(t, []int{want}, at)
			found, err := r.Get(t.Context(), ref)
			require.NoError(t, err)
			require.Equal(t, lanes[want], found.Lane)
		}
	}
}

func TestRouterRevive_RevivesJobsOfAllShards(t *testing.T) {
	onShards(t, func(t *testing.T, r *router.Router, a *unavailable) {
		refs := insertDead(t, r, a, 2*store.MaxBatch+7)
		var items []store.Revival
		for _, ref := range refs {
			items = append(items,
				store.Revival{Ref: ref, Delay: time.Hour, URL: "https://moved.example/" + ref.ID, From: job.Dead})
		}
		nobody := store.Revival{Ref: job.Ref{Namespace: "default", ID: "nobody"}}
		items = slices.Insert(items, 3, nobody)
		results := r.Revive(t.Context(), items)
		require.Len(t, results, len(items))
		for i, got := range results {
			if i == 3 {
				require.ErrorIs(t, got.Err, store.ErrNotFound)
				continue
			}
			require.NoError(t, got.Err)
			require.Equal(t, items[i].Ref, got.Job.Ref(), "results are in order")
			require.Equal(t, items[i].URL, got.Job.URL)
			require.Equal(t, job.Scheduled, got.Job.State)
		}
		for _, got := range r.Revive(t.Context(), items[:3]) {
			var state *store.StateError
			require.ErrorAs(t, got.Err, &state)
			require.Equal(t, job.Scheduled, state.State)
		}
		require.Empty(t, r.Revive(t.Context(), nil))
	})
}

// removals returns removals of jobs.
func removals(refs []job.Ref) (items []store.Removal) {
	for _, ref := range refs {
		items = append(items, store.Removal{Ref: ref})
	}
	return items
}

func TestRouterPurge_PurgesJobsOfAllShards(t *testing.T) {
	onShards(t, func(t *testing.T, r *router.Router, a *unavailable) {
		refs := insertDead(t, r, a, 2*store.MaxBatch+7)
		alive := entry("alive", "orders", "lane-1")
		require.NoError(t, r.Insert(t.Context(), []store.NewJob{alive})[0].Err)
		asked := slices.Insert(slices.Clone(refs), 3, alive.Ref(), job.Ref{Namespace: "default", ID: "nobody"})
		errs := r.Purge(t.Context(), removals(asked))
		require.Len(t, errs, len(asked))
		for i, err := range errs {
			switch i {
			case 3:
				var state *store.StateError
				require.ErrorAs(t, err, &state)
			case 4:
				require.ErrorIs(t, err, store.ErrNotFound)
			default:
				require.NoError(t, err)
			}
		}
		stats, err := r.TopicStats(t.Context(), store.StatsFilter{Namespace: "default", Topics: []string{"orders"}})
		require.NoError(t, err)
		require.EqualValues(t, len(refs), stats[0].Dead)
		_, err = r.Get(t.Context(), refs[0])
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Empty(t, r.Purge(t.Context(), nil))
	})
}

func TestRouterRevive_FailsOnlyTheJobsOfAnUnavailableShard(t *testing.T) {
	r, a := newUnavailable(t, shards)
	refs := insertDead(t, r, a, 200)
	at, err := r.Find(t.Context(), refs)
	require.NoError(t, err)
	a.shard = at[0]
	var items []store.Revival
	for _, ref := range refs[:100] {
		items = append(items, store.Revival{Ref: ref, Delay: time.Hour})
	}
	for i, got := range r.Revive(t.Context(), items) {
		if at[i] == a.shard {
			require.ErrorIs(t, got.Err, store.ErrUnavailable)
		} else {
			require.NoError(t, got.Err)
		}
	}
	for i, err := range r.Purge(t.Context(), removals(refs[100:])) {
		if at[100+i] == a.shard {
			require.ErrorIs(t, err, store.ErrUnavailable)
		} else {
			require.NoError(t, err)
		}
	}
	a.shard = -1
	for i, ref := range refs {
		found, err := r.Get(t.Context(), ref)
		switch {
		case at[i] == at[0]:
			require.Equal(t, job.Dead, found.State, "nothing became of it")
		case i < 100:
			require.Equal(t, job.Scheduled, found.State)
		default:
			require.ErrorIs(t, err, store.ErrNotFound)
		}
	}
}

func TestRouterRevive_IsUnavailableForAJobThatMayBeOnAnUnavailableShard(t *testing.T) {
	r, a := newUnavailable(t, shards)
	refs := insertDead(t, r, a, 50)
	at, err := r.Find(t.Context(), refs)
	require.NoError(t, err)
	a.shard, a.known = at[0], true
	_, err = r.Find(t.Context(), refs)
	require.ErrorIs(t, err, store.ErrUnavailable)
	for i, err := range r.Purge(t.Context(), removals(refs)) {
		if at[i] == a.shard {
			require.ErrorIs(t, err, store.ErrUnavailable)
		} else if err != nil { // it may have been found
			require.ErrorIs(t, err, store.ErrUnavailable)
		}
	}
	a.shard = -1
	for i, ref := range refs {
		if at[i] == at[0] {
			_, err := r.Get(t.Context(), ref)
			require.NoError(t, err)
		}
	}
}

func TestRouterLanes_AreReadAndListedOverAllShards(t *testing.T) {
	onShards(t, func(t *testing.T, r *router.Router, a *unavailable) {
		var queues []job.Queue
		for i := range 2*store.MaxBatch + 7 {
			queues = append(queues, job.Queue{Namespace: "default", Topic: "orders", Lane: fmt.Sprintf("lane-%04d", i)})
		}
		for i := 0; i < len(queues); i += 10 {
			put, err := r.PutLane(t.Context(),
				store.Lane{Queue: queues[i], Settings: policy.Lane{LaneConcurrency: i + 1}})
			require.NoError(t, err)
			require.NotZero(t, put.Revision)
		}
		_, err := r.PutLane(t.Context(),
			store.Lane{Queue: queues[0], Settings: policy.Lane{Paused: true}, Revision: 99_999})
		require.ErrorIs(t, err, store.ErrVersion)

		lanes, err := r.GetLanes(t.Context(), queues)
		require.NoError(t, err)
		require.Len(t, lanes, len(queues))
		for i, lane := range lanes {
			require.Equal(t, queues[i], lane.Queue, "they are in order")
			if i%10 == 0 {
				require.Equal(t, i+1, lane.Settings.LaneConcurrency)
			} else {
				require.Zero(t, lane.Revision)
			}
		}
		page, err := r.ListLanes(t.Context(), "default", "orders", "lane-0015", 3)
		require.NoError(t, err)
		var names []string
		for _, lane := range page {
			names = append(names, lane.Queue.Lane)
		}
		require.Equal(t, []string{"lane-0020", "lane-0030", "lane-0040"}, names)

		a.shard = r.ShardOf(queues[0])
		_, err = r.GetLanes(t.Context(), queues)
		require.ErrorIs(t, err, store.ErrUnavailable)
	})
}

func TestShardOfTopic_NeverChanges(t *testing.T) {
	r, _ := newUnavailable(t, shards)
	seen := make(map[int]bool)
	for i := range 200 {
		shard := r.ShardOfTopic("default", fmt.Sprintf("topic-%d", i))
		require.True(t, shard >= 0 && shard < shards)
		seen[shard] = true
	}
	require.Len(t, seen, shards, "topics spread")
	// The counts of a topic are on this shard: a change of the hash would lose them.
	require.Equal(t, map[string]int{"orders": 6, "mails": 5}, map[string]int{
		"orders": r.ShardOfTopic("default", "orders"), "mails": r.ShardOfTopic("default", "mails"),
	})
}

func TestRouterTopicStats_AddsUpOpenBreakers(t *testing.T) {
	onShards(t, func(t *testing.T, r *router.Router, _ *unavailable) {
		for i := range 12 {
			e := entry(fmt.Sprintf("job-%d", i), "orders", fmt.Sprintf("lane-%d", i))
			e.Delay = 0
			require.NoError(t, r.Insert(t.Context(), []store.NewJob{e})[0].Err)
			claimed, err := r.Shards()[r.ShardOf(e.Queue)].Claim(t.Context(), store.NewToken(), store.ClaimRequest{
				Queues: []store.QueueClaim{{Queue: e.Queue, Max: 1, Timeout: time.Hour}}, Max: 1, MaxBytes: 1,
			})
			require.NoError(t, err)
			item := store.Settlement{
				Ref: e.Ref(), Queue: e.Queue, Lease: claimed.Jobs[0].Lease,
				Verdict:    policy.Verdict{Kind: policy.Again, Wait: time.Hour},
				LaneChange: store.LaneChange{Breaker: store.OpenBreaker, Cooldown: time.Minute},
			}
			_, _, err = r.Shards()[r.ShardOf(e.Queue)].Settle(t.Context(), store.NewToken(),
				[]store.Settlement{item}, nil)
			require.NoError(t, err)
		}
		stats, err := r.TopicStats(t.Context(), store.StatsFilter{Namespace: "default", Topics: []string{"orders"}})
		require.NoError(t, err)
		require.EqualValues(t, 12, stats[0].OpenBreakers)
	})
}

func TestRouterReadHistory_CountsATopicOnceHoweverOftenItIsNamed(t *testing.T) {
	onShards(t, func(t *testing.T, r *router.Router, a *unavailable) {
		const n = 20
		insertDead(t, r, a, n)
		all, err := r.ReadHistory(t.Context(), "default", []string{"orders", "none", "orders", store.AllTopics})
		require.NoError(t, err)
		var died []int64
		for _, h := range all {
			sum := int64(0)
			for _, b := range h.Hours {
				sum += b.Dead
			}
			died = append(died, sum)
		}
		require.Equal(t, []int64{n, 0, n, n}, died)
		require.Equal(t, "none", all[1].Topic)
	})
}
