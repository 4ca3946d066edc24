package carrier_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/carrier"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var queue = job.Queue{Namespace: "default", Topic: "orders", Lane: "a"}

// run starts a carrier over s and returns how to stop it.
func run(t *testing.T, s store.Store) (stop func()) {
	t.Helper()
	c := carrier.New(router.New(s), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { c.Run(ctx) })
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); ended.Wait() }) }
	t.Cleanup(stop)
	return stop
}

func model(shards int) store.Store {
	return storetest.NewModel(storetest.ModelOptions{Shards: shards})
}

// insert registers a job on shard 0.
func insert(t *testing.T, s store.Store, id string, delay time.Duration) {
	t.Helper()
	var e store.NewJob
	e.ID, e.Queue, e.URL, e.Method, e.Delay = id, queue, "https://x.example/", "POST", delay
	_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{e})
	require.NoError(t, err)
}

// claim claims the ready jobs.
func claim(t *testing.T, s store.Store) []store.ClaimedJob {
	t.Helper()
	claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: queue, Max: 10, Timeout: 10 * time.Second}}, Max: 10,
		MaxBytes: 1 << 20, Margin: 5 * time.Second,
	})
	require.NoError(t, err)
	return claimed.Jobs
}

// countingStore counts Carry calls.
type countingStore struct {
	store.Store
	mu      sync.Mutex
	carries int
}

func (c *countingStore) Shards() []store.Shard {
	return storetest.WrapShards(c.Store, func(_ int, next store.Shard) store.Shard { return countingShard{next, c} })
}

type countingShard struct {
	store.Shard
	*countingStore
}

func (c countingShard) Carry(
	ctx context.Context, token store.Token, round store.CarryOptions,
) (store.CarryResult, error) {
	c.mu.Lock()
	c.carries++
	c.mu.Unlock()
	return c.Shard.Carry(ctx, token, round)
}

func (c *countingStore) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.carries
}

func TestCarry_WakesTheWaiterWhenAJobIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model(1)
		insert(t, s, "later", 7300*time.Millisecond)
		run(t, s)
		began := time.Now()
		for {
			wakeup, err := s.Shards()[0].Wait(t.Context(), store.WaitOptions{Groups: []string{store.GroupPush}})
			require.NoError(t, err)
			if len(wakeup) > 0 {
				require.Equal(t, []job.Queue{queue}, wakeup)
				break
			}
		}
		require.GreaterOrEqual(t, time.Since(began), 7300*time.Millisecond)
		require.Less(t, time.Since(began), 7310*time.Millisecond)
	})
}

func TestCarry_IdleCarrierPollsOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &countingStore{Store: model(1)}
		insert(t, s, "much-later", time.Hour)
		run(t, s)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.InDelta(t, 60, s.count(), 5)
	})
}

func TestCarry_WakesWhenTheAgendaMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model(1)
		run(t, s)
		for i := range 5 {
			time.Sleep(5*time.Second + 77*time.Millisecond)
			insert(t, s, fmt.Sprint(i), 100*time.Millisecond)
			time.Sleep(105 * time.Millisecond)
			jobs := claim(t, s)
			require.Len(t, jobs, 1)
			settleAll(t, s, jobs)
		}
	})
}

func TestLead_AnotherCarrierTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model(1)
		first, second := &countingStore{Store: s}, &countingStore{Store: s}
		stop := run(t, first)
		synctest.Wait()
		run(t, second)
		time.Sleep(10 * time.Second)
		require.Positive(t, first.count())
		require.Zero(t, second.count())
		stop()
		time.Sleep(2 * time.Second)
		require.Positive(t, second.count(), "the lock was given up, not left to run out")
	})
}

func TestLeases_ExpireAfterAMarginWhenAnOutageEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		away := false
		set := func(x bool) { mu.Lock(); defer mu.Unlock(); away = x }
		s := storetest.Faulty(model(1), func(string) storetest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if away {
				return storetest.Before
			}
			return storetest.None
		})
		run(t, s)
		insert(t, s, "held", 0)
		held := claim(t, s)
		require.Len(t, held, 1)
		time.Sleep(14 * time.Second)
		set(true) // the lease ends in the middle of an outage
		time.Sleep(30 * time.Second)
		set(false)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		got, err := s.Shards()[0].Get(t.Context(), held[0].Ref())
		require.NoError(t, err)
		require.Equal(t, job.Running, got.State, "its worker may only have been unable to settle")
		time.Sleep(4 * time.Second)
		synctest.Wait()
		got, err = s.Shards()[0].Get(t.Context(), held[0].Ref())
		require.NoError(t, err)
		require.Equal(t, job.Ready, got.State)
		require.Equal(t, 1, got.ConsecutiveLost)
	})
}

func TestRelay_InsertsEachOutboxJobOnceDespiteFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := model(4)
		s := storetest.Faulty(whole, storetest.Share(3, 0.2))
		insert(t, whole, "parent", 0)
		held := claim(t, whole)
		var entries []store.NewJob
		for _, lane := range []string{"b", "c", "d", "e", "f", "g"} {
			var e store.NewJob
			e.ID, e.URL, e.Method, e.Origin, e.Fingerprint = "callback-"+lane, "https://x.example/", "POST", "parent",
				[]byte("print")
			e.Queue = job.Queue{Namespace: "default", Topic: "children", Lane: lane}
			entries = append(entries, e)
		}
		errs, _, err := whole.Shards()[0].Settle(t.Context(), store.NewToken(), []store.Settlement{{
			Ref: held[0].Ref(), Queue: queue, Lease: held[0].Lease,
			Verdict: policy.Verdict{Kind: policy.Delivered}, Outbox: entries,
		}}, nil)
		require.NoError(t, err)
		require.NoError(t, errs[0])
		run(t, s)
		time.Sleep(time.Minute)
		synctest.Wait()
		rt := router.New(whole)
		for _, b := range entries {
			got, err := rt.Get(t.Context(), b.Ref())
			require.NoError(t, err)
			require.Equal(t, "parent", got.Origin)
		}
		stats, err := rt.TopicStats(t.Context(), store.StatsFilter{Namespace: "default", Topics: []string{"children"}})
		require.NoError(t, err)
		require.EqualValues(t, len(entries), stats[0].Registered)
	})
}

func TestSweep_RemovesExpiredJobsInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy.Builtin()
		p.KeepDelivered.For = new(10 * time.Minute)
		s := storetest.NewModel(storetest.ModelOptions{Defaults: p})
		run(t, s)
		insert(t, s, "done", 0)
		held := claim(t, s)
		_, _, err := s.Shards()[0].Settle(t.Context(), store.NewToken(), []store.Settlement{{
			Ref: held[0].Ref(), Queue: queue, Lease: held[0].Lease, Verdict: policy.Verdict{Kind: policy.Delivered},
		}}, nil)
		require.NoError(t, err)
		time.Sleep(9 * time.Minute)
		_, err = s.Shards()[0].Get(t.Context(), held[0].Ref())
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		_, err = s.Shards()[0].Get(t.Context(), held[0].Ref())
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}
