package pool_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// settleCounter delays Settle, and counts its calls and settlements.
type settleCounter struct {
	store.Store
	took time.Duration

	mu      sync.Mutex
	made    int
	settled int
}

func (t *settleCounter) Shards() []store.Shard {
	return storetest.WrapShards(t.Store,
		func(_ int, next store.Shard) store.Shard { return settleCounterShard{next, t} })
}

type settleCounterShard struct {
	store.Shard
	*settleCounter
}

func (s settleCounterShard) Settle(
	ctx context.Context, tok store.Token, it []store.Settlement, n *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	s.mu.Lock()
	s.made++
	s.settled += len(it)
	s.mu.Unlock()
	time.Sleep(s.took)
	return s.Shard.Settle(ctx, tok, it, n)
}

func (t *settleCounter) counts() (made, settled int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.made, t.settled
}

// newUnlimitedModel returns a model with a large lane_concurrency.
func newUnlimitedModel() store.Store {
	return storetest.NewModel(
		storetest.ModelOptions{Defaults: policy.Topic{LaneConcurrency: 1000}.WithDefaults(policy.Builtin())},
	)
}

func workers(n int) func(*pool.Options) {
	return withPolicy(policy.Topic{Workers: n, LaneConcurrency: 1000})
}

// The store is away half of the time.
func TestPrefetch_KeepsWorkersBusyDuringACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, n = 2000, 10
		s, g := &settleCounter{Store: newUnlimitedModel(), took: 20 * time.Millisecond}, newGauge(10*time.Millisecond)
		fill(t, s, jobs, "orders/x")
		stop := run(t, s, g, workers(n))
		time.Sleep(jobs / n * 10 * time.Millisecond * 5 / 4) // a quarter more than workers that never wait
		require.Equal(t, jobs, g.count(""))
		require.Equal(t, n, g.peak(""), "claimed ahead is not begun ahead")
		require.NoError(t, stop())
		made, settled := s.counts()
		require.Equal(t, jobs, settled)
		require.Less(t, made, jobs/8, "trips carry what ended during the one before")
	})
}

func TestBatching_DoesNotDelayFewSettlements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := &settleCounter{Store: newUnlimitedModel()}, newGauge(10*time.Millisecond)
		fill(t, s, 3, "orders/x")
		run(t, s, g, workers(10))
		time.Sleep(30 * time.Millisecond)
		_, settled := s.counts()
		require.Equal(t, 3, settled)
	})
}

func TestPrefetch_GoesToAnotherProcessWhenWorkersHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 400
		s, other := &settleCounter{Store: newUnlimitedModel()}, newGauge(time.Millisecond)
		var begun atomic.Int64
		hang := make(chan struct{})
		defer close(hang)
		slowly := delivererFunc(func(context.Context, job.Request) policy.Result {
			if begun.Add(1) > 200 {
				<-hang
			}
			time.Sleep(5 * time.Millisecond)
			return policy.Result{Status: 200}
		})
		fill(t, s, jobs, "orders/x")
		carry(t, s)
		run(t, s, slowly, workers(10))
		time.Sleep(2 * time.Second) // ten hang
		require.EqualValues(t, 210, begun.Load())
		before, _ := s.counts()
		time.Sleep(2 * time.Second)
		after, _ := s.counts()
		require.Equal(t, before, after, "what was put back is not claimed again")
		run(t, s, other, workers(10))
		time.Sleep(2 * time.Second)
		require.Equal(t, jobs-210, other.count(""), "all but those that hang")
	})
}

func TestPrefetch_IsReleasedUncountedAtStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 400
		s, g := newUnlimitedModel(), newGauge(5*time.Millisecond)
		carry(t, s)
		fill(t, s, jobs, "orders/x")
		stop := run(t, s, g, workers(10))
		time.Sleep(50 * time.Millisecond)
		require.NoError(t, stop())
		made := g.count("")
		require.Less(t, made, jobs)

		stats, err := s.Shards()[0].TopicStats(t.Context(),
			store.StatsFilter{Namespace: "default", Topics: []string{"orders"}})
		require.NoError(t, err)
		require.Zero(t, stats[0].Running)
		require.EqualValues(t, made, stats[0].Delivered)

		run(t, s, g, workers(10))
		time.Sleep(2 * time.Second)
		require.Equal(t, jobs, g.count(""), "none twice")
	})
}

func TestPrefetch_DoesNotDelayLaterJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newUnlimitedModel(), newGauge(20*time.Millisecond)
		fill(t, s, 2000, "orders/x")
		run(t, s, g, workers(10))
		time.Sleep(500 * time.Millisecond)
		began := time.Now()
		fill(t, s, 1, "mail/y")
		for g.count("mail") == 0 {
			time.Sleep(time.Millisecond)
		}
		require.Less(t, time.Since(began), 10*time.Millisecond)
	})
}

func TestPrefetch_UsesAddedWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newUnlimitedModel(), newGauge(10*time.Millisecond)
		policies := &changingPolicy{}
		policies.put(policy.Topic{Workers: 5, LaneConcurrency: 1000}.WithDefaults(policy.Builtin()))
		fill(t, s, 5000, "orders/x")
		run(t, s, g, func(o *pool.Options) { o.Policies = policies })
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 5, g.peak(""))
		policies.put(policy.Topic{Workers: 20, LaneConcurrency: 1000}.WithDefaults(policy.Builtin()))
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 20, g.peak(""))
	})
}
