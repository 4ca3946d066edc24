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
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// Exchanges that follow each other without a pause must not delay the check of prefetched jobs.
func TestPrefetch_ReleasesStaleJobsDespiteABusyTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, n, quick = 1000, 64, 200
		s := &settleCounter{Store: newUnlimitedModel(), took: 20 * time.Millisecond}
		var hanging, steady atomic.Int64
		over := make(chan struct{})
		defer close(over)
		fill(t, s, jobs, "orders/y")
		fill(t, s, 18_000, "steady/x")
		carry(t, s)
		run(t, s, delivererFunc(func(_ context.Context, r job.Request) policy.Result {
			if r.Queue.Topic == "steady" {
				steady.Add(1) // 256 end during an exchange: too many to batch
			} else if hanging.Add(1) > quick {
				<-over
			}
			time.Sleep(5 * time.Millisecond)
			return policy.Result{Status: 200}
		}), workers(n))
		time.Sleep(time.Second)
		require.EqualValues(t, quick+n, hanging.Load())
		before := steady.Load()
		time.Sleep(200 * time.Millisecond)
		require.Greater(t, steady.Load()-before, int64(2000), "the other topic is busy all the while")

		other := 0
		for range 3 {
			claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), store.ClaimRequest{
				Queues: []store.QueueClaim{{Queue: queueOf("orders", "y"), Max: store.MaxBatch, Timeout: time.Second}},
				Max:    store.MaxBatch, MaxBytes: 1 << 20, Margin: time.Second,
			})
			require.NoError(t, err)
			other += len(claimed.Jobs)
		}
		require.Equal(t, jobs-quick-n, other, "all but those that hang")
	})
}

// refusingStore is slow, rejects settlements with a cooldown, and records releases.
type refusingStore struct {
	store.Store
	took time.Duration

	mu      sync.Mutex
	refused time.Time // when it answered so last
	back    time.Time // when one came last that was not attempted
}

func (r *refusingStore) Shards() []store.Shard {
	return storetest.WrapShards(r.Store,
		func(_ int, next store.Shard) store.Shard { return refusingStoreShard{next, r} })
}

type refusingStoreShard struct {
	store.Shard
	*refusingStore
}

func (s refusingStoreShard) Settle(
	ctx context.Context, tok store.Token, it []store.Settlement, n *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	time.Sleep(s.took)
	s.mu.Lock()
	var taken []store.Settlement
	refused := make([]error, len(it))
	for i := range it {
		if it[i].LaneChange.Cooldown > 0 {
			refused[i], s.refused = store.ErrLeaseLost, time.Now()
			continue
		}
		if it[i].Verdict.Kind == policy.Released {
			s.back = time.Now()
		}
		taken = append(taken, it[i])
	}
	s.mu.Unlock()
	errs, claimed, err := s.Shard.Settle(ctx, tok, taken, n)
	for i := range it {
		if refused[i] == nil && len(errs) > 0 {
			refused[i], errs = errs[0], errs[1:]
		}
	}
	return refused, claimed, err
}

func TestPrefetch_ContinuesWhenTheSettlementWithTheCooldownIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &refusingStore{Store: newUnlimitedModel(), took: 20 * time.Millisecond}
		var made atomic.Int64
		fill(t, s, 3000, "orders/x")
		carry(t, s)
		run(t, s, delivererFunc(func(context.Context, job.Request) policy.Result {
			time.Sleep(5 * time.Millisecond)
			if made.Add(1) == 1000 {
				return policy.Result{Status: 429, RetryAfter: time.Minute}
			}
			return policy.Result{Status: 200}
		}), workers(10))
		time.Sleep(3 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		require.False(t, s.refused.IsZero())
		require.Less(t, s.back.Sub(s.refused), 50*time.Millisecond, "later than what waited until then")
		require.EqualValues(t, 3000, made.Load())
	})
}
