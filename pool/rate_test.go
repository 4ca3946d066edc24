package pool_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// carry makes the rounds of each shard's carrier until the test ends.
func carry(t *testing.T, s store.Store) {
	t.Helper()
	for shard := range s.Shards() {
		carryShard(t, s, shard)
	}
}

func carryShard(t *testing.T, s store.Store, shard int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			c, err := s.Shards()[shard].Carry(ctx, store.NewToken(), store.CarryOptions{})
			wait := c.Next
			if err != nil || wait < 0 || wait > 100*time.Millisecond {
				wait = 100 * time.Millisecond
			}
			select {
			case <-time.After(max(wait, time.Millisecond)):
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// startRecorder records the starts of attempts.
type startRecorder struct {
	took func() time.Duration // nil: no time

	mu sync.Mutex
	by map[string][]time.Time // by lane, and "" for all
}

// newCalls returns a store whose topic calls has a policy, and a deliverer.
func newCalls(t *testing.T, topicPolicy policy.Topic) (store.Store, *startRecorder) {
	t.Helper()
	s := model()
	_, err := store.PutTopic(t.Context(), s, store.Topic{Namespace: "default", Name: "calls", Policy: topicPolicy})
	require.NoError(t, err)
	return s, &startRecorder{}
}

func (s *startRecorder) Deliver(_ context.Context, r job.Request) policy.Result {
	now := time.Now()
	s.mu.Lock()
	if s.by == nil {
		s.by = map[string][]time.Time{}
	}
	for _, key := range []string{"", r.Queue.Lane} {
		s.by[key] = append(s.by[key], now)
	}
	s.mu.Unlock()
	if s.took != nil {
		time.Sleep(s.took())
	}
	return policy.Result{Status: 200}
}

// requireRate fails when any window of the rate's length, closed at its begin and open at its end, holds more starts
// than the rate allows.
func requireRate(t *testing.T, rate policy.Rate, times []time.Time, what string) {
	t.Helper()
	times = slices.Clone(times)
	slices.SortFunc(times, time.Time.Compare)
	for i := range times {
		if j := i + rate.Starts; j < len(times) {
			require.GreaterOrEqual(t, times[j].Sub(times[i]), rate.Per,
				"%s: start %d comes too early after start %d", what, j, i)
		}
	}
}

// laggingShard delays the replies of Claim, Settle and Permit by random times.
type laggingShard struct {
	store.Shard
	most time.Duration
}

func newLaggingStore(s store.Store, most time.Duration) store.Store {
	return wrap(s, func(next store.Shard) store.Shard { return laggingShard{next, most} })
}

func (s laggingShard) lag() { time.Sleep(rand.N(s.most)) }

func (s laggingShard) Claim(ctx context.Context, tok store.Token, r store.ClaimRequest) (store.ClaimResult, error) {
	s.lag()
	defer s.lag()
	return s.Shard.Claim(ctx, tok, r)
}

func (s laggingShard) Settle(
	ctx context.Context, tok store.Token, it []store.Settlement, n *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	s.lag()
	defer s.lag()
	return s.Shard.Settle(ctx, tok, it, n)
}

func (s laggingShard) Permit(ctx context.Context, tok store.Token, asks []store.PermitRequest) ([]store.Permit, error) {
	s.lag()
	defer s.lag()
	return s.Shard.Permit(ctx, tok, asks)
}

// Three processes on one store never begin more attempts in any window than the rate allows, and come close to it.
func TestRate_HoldsOverThreeProcessesInEveryWindow(t *testing.T) {
	rates := []policy.Rate{
		{Starts: 7, Per: 3 * time.Second}, {Starts: 20, Per: time.Second}, {Starts: 1, Per: time.Second},
	}
	lags := []time.Duration{30 * time.Millisecond, time.Microsecond}
	for _, rate := range rates[:testkit.Of(2, len(rates))] {
		for _, lag := range lags[:testkit.Of(1, len(lags))] {
			for name, topicPolicy := range map[string]policy.Topic{
				"topic": {Rate: rate}, "lane": {LaneRate: rate},
				"both": {Rate: rate, LaneRate: policy.Rate{Starts: 2, Per: time.Second}},
			} {
				t.Run(fmt.Sprintf("%d in %s of a %s with calls of up to %s", rate.Starts, rate.Per, name,
					lag), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { testRateOverProcesses(t, topicPolicy, lag) })
				})
			}
		}
	}
}

func testRateOverProcesses(t *testing.T, topicPolicy policy.Topic, lag time.Duration) {
	s, d := newCalls(t, topicPolicy)
	d.took = func() time.Duration { return rand.N(50 * time.Millisecond) }
	carry(t, s)
	lanes := []string{"a", "b", "c"}
	fill(t, s, 400, "calls/a", "calls/b", "calls/c")
	for range 3 {
		run(t, newLaggingStore(s, lag), d, withPolicy(topicPolicy))
	}
	const long = 30 * time.Second
	time.Sleep(long)
	d.mu.Lock()
	defer d.mu.Unlock()
	all, most := len(d.by[""]), 1200
	if topicPolicy.Rate.Limited() {
		requireRate(t, topicPolicy.Rate, d.by[""], "the topic")
		most = min(most, topicPolicy.Rate.Starts*int(long/topicPolicy.Rate.Per))
	}
	if topicPolicy.LaneRate.Limited() {
		for _, lane := range lanes {
			requireRate(t, topicPolicy.LaneRate, d.by[lane], "lane "+lane)
		}
		most = min(most, len(lanes)*topicPolicy.LaneRate.Starts*int(long/topicPolicy.LaneRate.Per))
	}
	t.Logf("%d starts of at most %d", all, most)
	require.GreaterOrEqual(t, all, most*4/10, "the rate is made use of")
}

// A start that comes later than the store counted on is not made: its job goes back, and none of it counts.
func TestRate_LateStartsAreNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topicPolicy := policy.Topic{LaneRate: policy.Rate{Starts: 1, Per: time.Second}}
		late := &lateOnceStore{by: 300 * time.Millisecond}
		s, d := newRateTest(t, topicPolicy, func(s store.Store) store.Store {
			late.Store = s
			return late
		})
		fill(t, s, 3, "calls/a")
		time.Sleep(time.Minute)
		d.mu.Lock()
		defer d.mu.Unlock()
		require.Len(t, d.by["a"], 3, "each is delivered in the end")
		requireRate(t, topicPolicy.LaneRate, d.by["a"], "the lane")
		for i := range 3 {
			j, err := s.Shards()[0].Get(t.Context(), job.Ref{Namespace: "default", ID: fmt.Sprintf("calls-a-%d", i)})
			require.NoError(t, err)
			require.Equal(t, job.Delivered, j.State)
			require.Equal(t, 1, j.Attempts)
			require.Len(t, j.History, 1)
		}
		require.True(t, late.done)
	})
}

// lateOnceStore delays the reply of the first claim with a job.
type lateOnceStore struct {
	store.Store
	by   time.Duration
	done bool
}

func (l *lateOnceStore) Shards() []store.Shard {
	return storetest.WrapShards(l.Store, func(_ int, next store.Shard) store.Shard { return lateOnceShard{next, l} })
}

type lateOnceShard struct {
	store.Shard
	*lateOnceStore
}

func (s lateOnceShard) Claim(ctx context.Context, tok store.Token, r store.ClaimRequest) (store.ClaimResult, error) {
	c, err := s.Shard.Claim(ctx, tok, r)
	if len(c.Jobs) > 0 && !s.done {
		s.done = true
		time.Sleep(s.by)
	}
	return c, err
}
