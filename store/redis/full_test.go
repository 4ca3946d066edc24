package redis

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// setMaxMemory sets a server's maxmemory: 1 is less than it uses, 0 is no limit.
func setMaxMemory(t *testing.T, c *redis.Client, bytes string) {
	t.Helper()
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", bytes).Err())
}

func TestFull_RefusesJobsAndDelivers(t *testing.T) {
	server := redistest.Start(t)
	s, c := open(t, Options{URL: server.URL()}), client(t, server.Addr())
	expiring, waiting, gone := entry("expiring"), entry("waiting"), entry("gone")
	waiting.Delay, gone.Delay, gone.Topic = time.Hour, time.Hour, "u"
	insert(t, s, entry("a"), entry("b"), expiring, waiting, gone)
	_, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("gone"), store.Cancellation{})
	require.NoError(t, err)
	_, err = store.PutTopic(t.Context(), s, store.Topic{
		Namespace: lane.Namespace, Name: "u",
		Policy: policy.Topic{KeepDelivered: policy.Retention{Max: new(int64(0))}},
	})
	require.NoError(t, err)
	setMaxMemory(t, c, "1")

	_, err = s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("c")})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "OOM (its memory is full)")
	require.ErrorIs(t, s.Ping(t.Context()), store.ErrUnavailable)

	token := store.NewToken()
	held, err := s.Shards()[0].Claim(t.Context(), token, wants(2))
	require.NoError(t, err)
	require.Len(t, held.Jobs, 2)
	again, err := s.Shards()[0].Claim(t.Context(), token, wants(2))
	require.NoError(t, err)
	require.Len(t, again.Jobs, 2)
	next := wants(1)
	next.Queues[0].Timeout, next.Margin = time.Millisecond, 0
	errs, third, err := s.Shards()[0].Settle(t.Context(), store.NewToken(),
		[]store.Settlement{settlement(held.Jobs[0], policy.Verdict{Kind: policy.Delivered}, 200)}, &next)
	require.NoError(t, err)
	require.Equal(t, []error{nil}, errs)
	require.Len(t, third.Jobs, 1)
	marked, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), third.Jobs[0].Ref(), store.Cancellation{})
	require.NoError(t, err)
	require.True(t, marked.CancelRequested)
	settle(t, s, settlement(held.Jobs[1], policy.Verdict{Kind: policy.Again, Wait: time.Hour}, 500))

	lead, err := s.Shards()[0].Lead(t.Context())
	require.NoError(t, err)
	_, err = s.Shards()[0].Lead(t.Context())
	require.ErrorIs(t, err, store.ErrNotLeader)
	require.NoError(t, lead.Extend(t.Context()))
	expired := 0
	require.Eventually(t, func() bool {
		carried, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
		expired += carried.ExpiredLeases
		return expired == 1
	}, time.Minute, 5*time.Millisecond)
	cancelled, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("waiting"), store.Cancellation{})
	require.NoError(t, err)
	require.Equal(t, job.Cancelled, cancelled.State)
	_, err = s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("unknown"), store.Cancellation{})
	require.ErrorIs(t, err, store.ErrNotFound)
	swept, err := s.Shards()[0].Sweep(t.Context(), store.NewToken(), 10)
	require.NoError(t, err)
	require.Equal(t, 1, swept.Jobs)
	_, err = s.Shards()[0].Sweep(t.Context(), store.NewToken(), 10)
	require.NoError(t, err, "with nothing to remove")
	require.NoError(t, s.Shards()[0].Notify(t.Context(), []job.Queue{lane}))
	require.NoError(t, lead.Release(t.Context()))
	other := open(t, Options{URL: server.URL()})
	_, err = other.Shards()[0].Get(t.Context(), ref("b"))
	require.NoError(t, err)

	setMaxMemory(t, c, "0")
	_, err = s.Shards()[0].Get(t.Context(), ref("c"))
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestFull_CopiesAMissingPolicy(t *testing.T) {
	server := redistest.Start(t)
	s, c := open(t, Options{URL: server.URL()}), client(t, server.Addr())
	insert(t, s, entry("a"))
	_, err := store.PutTopic(t.Context(), s,
		store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Paused: true}})
	require.NoError(t, err)
	require.NoError(t, c.Del(t.Context(), s.shards[0].Keys.Limits).Err())
	setMaxMemory(t, c, "1")
	_, err = s.Shards()[0].Lead(t.Context())
	require.NoError(t, err)
	require.Empty(t, claimAll(t, s, 1).Jobs)
}

// Calls that take memory are refused whole: none of their writes may come before the one that Redis refuses.
func TestFull_RefusesLargeBodies(t *testing.T) {
	server := redistest.Start(t)
	s, c := open(t, Options{URL: server.URL()}), client(t, server.Addr())
	large := make([]byte, 1<<20)
	for i := range large {
		large[i] = 'x'
	}
	insert(t, s, entry("a"), entry("ended"))
	_, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("ended"), store.Cancellation{})
	require.NoError(t, err)
	before := map[string]job.Job{}
	for _, id := range []string{"a", "ended"} {
		before[id], err = s.Shards()[0].Get(t.Context(), ref(id))
		require.NoError(t, err)
	}
	setMaxMemory(t, c, "1")
	keys, err := c.DBSize(t.Context()).Result()
	require.NoError(t, err)

	e := entry("b")
	e.Body, e.Fingerprint = large, []byte("print")
	_, err = s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{e})
	require.ErrorIs(t, err, store.ErrUnavailable)
	_, err = s.Shards()[0].Replace(t.Context(), store.NewToken(), ref("a"), store.Replacement{
		Kind: job.EventEdited, Due: &job.TimeOrDelay{In: time.Hour}, Spec: &e.Spec,
	})
	require.ErrorIs(t, err, store.ErrUnavailable)
	_, err = reviveOne(t, s, store.NewToken(), "ended", time.Hour)
	require.ErrorIs(t, err, store.ErrUnavailable)

	after, err := c.DBSize(t.Context()).Result()
	require.NoError(t, err)
	require.Equal(t, keys, after)
	_, err = s.Shards()[0].Get(t.Context(), ref("b"))
	require.ErrorIs(t, err, store.ErrNotFound)
	for id, was := range before {
		now, err := s.Shards()[0].Get(t.Context(), ref(id))
		require.NoError(t, err)
		require.Equal(t, was, now)
	}
	setMaxMemory(t, c, "0")
	require.Len(t, claimAll(t, s, 10).Jobs, 1)
}

// A check repairs torn data while memory is full, too. Otherwise the jobs in them could not be delivered.
func TestRepair_GoesOnWhileMemoryIsFull(t *testing.T) {
	server := redistest.Start(t)
	s, c := open(t, Options{URL: server.URL()}), client(t, server.Addr())
	fillStore(t, s, 40)
	ctx, sh := t.Context(), s.shards[0]
	repairAll(t, s, 0)
	stats := sh.Keys.TopicByName(layout.TopicName(lane.Namespace, lane.Topic)).Stats
	require.NoError(t, c.HDel(ctx, sh.Keys.Names, "1").Err())
	require.NoError(t, c.Del(ctx, sh.Keys.Due("2"), sh.Keys.OutboxQueue).Err())
	require.NoError(t, c.HSet(ctx, stats, "reg", 1, "xb", 7).Err())
	require.NoError(t, c.HSet(ctx, sh.Keys.Attempts, "of-none", "x").Err())
	setMaxMemory(t, c, "1")
	found := requireRepair(t, s)
	for _, kind := range []store.RepairKind{
		store.RepairQueue, store.RepairUnplaced, store.RepairOutbox, store.RepairCounter, store.RepairLeftover,
	} {
		require.Positive(t, found[kind], kind)
	}
}
