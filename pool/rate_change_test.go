package pool_test

import (
	"context"
	"fmt"
	"sync"
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

// changingPolicy is a policy that changes while the pool runs, as when another process puts one.
type changingPolicy struct {
	fixedPolicy
	mu  sync.Mutex
	now policy.Topic
}

func (s *changingPolicy) Topic(string, string) policy.Topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *changingPolicy) put(t policy.Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = t.WithDefaults(policy.Builtin())
}

// newRateTest runs one process with a rate on its topic.
func newRateTest(t *testing.T, terms policy.Topic, wrap func(store.Store) store.Store) (store.Store, *startRecorder) {
	t.Helper()
	s, d := model(), &startRecorder{by: map[string][]time.Time{}, took: func() time.Duration { return 0 }}
	_, err := store.PutTopic(t.Context(), s, store.Topic{Namespace: "default", Name: "calls", Policy: terms})
	require.NoError(t, err)
	carry(t, s)
	on := s
	if wrap != nil {
		on = wrap(s)
	}
	run(t, on, d, func(o *pool.Options) { o.Policies = fixedPolicy(terms.WithDefaults(policy.Builtin())) })
	return s, d
}

// began are the begins on a lane so far, counted from a moment.
func (s *startRecorder) began(lane string, from time.Time) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []time.Duration
	for _, at := range s.by[lane] {
		all = append(all, at.Sub(from))
	}
	return all
}

func TestRate_RequestsNoMoreStartsThanThereAreJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s, d := newRateTest(t, policy.Topic{Rate: policy.Rate{Starts: 5, Per: 90 * time.Second}}, nil)
		fill(t, s, 3, "calls/a")
		time.Sleep(time.Second)
		insertOn(t, s, 0, "fourth", "calls", "a")
		time.Sleep(10 * time.Second)
		insertOn(t, s, 0, "fifth", "calls", "b")
		time.Sleep(3 * time.Second)
		require.Len(t, d.began("", began), 5, "five may begin in the window")
		insertOn(t, s, 0, "sixth", "calls", "b")
		time.Sleep(time.Minute)
		require.Len(t, d.began("", began), 5)
		time.Sleep(time.Minute)
		require.Len(t, d.began("", began), 6)
	})
}

func TestRate_ChangeAppliesToClaimedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := model(), &startRecorder{by: map[string][]time.Time{}, took: func() time.Duration { return 0 }}
		carry(t, s)
		terms := &changingPolicy{}
		terms.put(policy.Topic{})
		lag := laggingStore{s, 20 * time.Millisecond}
		run(t, lag, d, func(o *pool.Options) { o.Policies = terms })
		began := time.Now()
		for i := range 100 {
			insertOn(t, s, 0, fmt.Sprint(i), "calls", fmt.Sprint("lane-", i))
			if i == 50 {
				terms.put(policy.Topic{Rate: policy.Rate{Starts: 1, Per: time.Hour}})
			}
		}
		time.Sleep(10 * time.Second)
		before := len(d.began("", began))
		require.LessOrEqual(t, before, 53)
		terms.put(policy.Topic{})
		time.Sleep(20 * time.Second)
		require.Len(t, d.began("", began), 100, "and goes on when it is taken away")
	})
}

func TestRate_LateStartOfATopicIsMadeInTheNextWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s, d := newRateTest(t, policy.Topic{Rate: policy.Rate{Starts: 1, Per: time.Hour}}, func(s store.Store) store.Store {
			return &lateOnceStore{Store: s, by: 40 * time.Second}
		})
		fill(t, s, 1, "calls/a")
		time.Sleep(50 * time.Minute)
		require.Empty(t, d.began("a", began), "the late start counts")
		time.Sleep(15 * time.Minute)
		require.Len(t, d.began("a", began), 1)
	})
}

func TestRate_JobsWithoutARequestTakeNoStartOfTheTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := model(), &startRecorder{by: map[string][]time.Time{}, took: func() time.Duration { return 0 }}
		terms := policy.Topic{Rate: policy.Rate{Starts: 2, Per: time.Minute}, MaxAge: time.Hour}
		_, err := store.PutTopic(t.Context(), s, store.Topic{Namespace: "default", Name: "calls", Policy: terms})
		require.NoError(t, err)
		fill(t, s, 50, "calls/a")
		time.Sleep(2 * time.Hour)
		carry(t, s)
		began := time.Now()
		insertOn(t, s, 0, "fresh", "calls", "a")
		run(t, s, d, func(o *pool.Options) { o.Policies = fixedPolicy(terms.WithDefaults(policy.Builtin())) })
		time.Sleep(time.Minute)
		require.Len(t, d.began("a", began), 1)
	})
}

func TestRate_OfOneTopicDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := model(), &startRecorder{by: map[string][]time.Time{}, took: func() time.Duration { return 0 }}
		terms := policy.Topic{Rate: policy.Rate{Starts: 10, Per: time.Second}}
		_, err := store.PutTopic(t.Context(), s, store.Topic{Namespace: "default", Name: "calls", Policy: terms})
		require.NoError(t, err)
		carry(t, s)
		fill(t, s, 500, "calls/busy")
		run(t, s, d, func(o *pool.Options) { o.Policies = fixedPolicy(terms.WithDefaults(policy.Builtin())) })
		began := time.Now()
		for i := range 60 {
			time.Sleep(500 * time.Millisecond)
			insertOn(t, s, 0, fmt.Sprint("t", i), "trickle", "a")
		}
		n := len(d.began("busy", began))
		require.GreaterOrEqual(t, n, 270, "ten a second for half a minute")
	})
}

func TestRate_ServesWithASlowStore(t *testing.T) {
	for name, terms := range map[string]policy.Topic{
		"topic": {Rate: policy.Rate{Starts: 100, Per: time.Second}}, "lane": {LaneRate: policy.Rate{Starts: 100, Per: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s, d := newRateTest(t, terms, func(s store.Store) store.Store { return slowStore{s, 2500 * time.Millisecond, 0} })
				fill(t, s, 10, "calls/a")
				time.Sleep(5 * time.Minute)
				require.Len(t, d.began("a", began), 10)
			})
		})
	}
}

func TestStop_DoesNotWaitForPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := model(), &startRecorder{by: map[string][]time.Time{}, took: func() time.Duration { return 0 }}
		terms := policy.Topic{Rate: policy.Rate{Starts: 1, Per: time.Hour}}
		fill(t, s, 1, "calls/a")
		stop := run(t, silentPermitStore{s}, d, func(o *pool.Options) { o.Policies = fixedPolicy(terms.WithDefaults(policy.Builtin())) })
		time.Sleep(time.Second)
		began := time.Now()
		require.NoError(t, stop())
		require.Less(t, time.Since(began), time.Second)
	})
}

// silentPermitStore is a store whose Permit never returns.
type silentPermitStore struct{ store.Store }

func (u silentPermitStore) Shards() []store.Shard {
	return storetest.WrapShards(u.Store, func(_ int, next store.Shard) store.Shard { return silentPermitShard{next, u} })
}

type silentPermitShard struct {
	store.Shard
	silentPermitStore
}

func (silentPermitShard) Permit(ctx context.Context, _ store.Token, _ []store.PermitRequest) ([]store.Permit, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// A process that tripped a breaker does not hold it against the lane when another process had the probe.
func TestBreaker_CountsFromZeroWhenAnotherProcessClosedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := model(), &fakeHost{away: policy.Result{Class: policy.ClassRefused}, takes: 5 * time.Millisecond}
		carry(t, s)
		fill(t, s, 5, "shop/a")
		run(t, competingStore{s}, h, func(o *pool.Options) { o.Policies = fixedPolicy(breakable.WithDefaults(policy.Builtin())) })
		time.Sleep(20 * time.Second)
		require.True(t, laneStats(t, s).BreakerOpen)
		closeFromAnotherProcess(t, s)
		require.False(t, laneStats(t, s).BreakerOpen)
		before := h.count()
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 4, h.count()-before, "the others, once")
		require.False(t, laneStats(t, s).BreakerOpen, "four failures are no outage")
	})
}

// competingStore lets another process, which polls every 5 ms, claim due jobs.
type competingStore struct{ store.Store }

func (o competingStore) Shards() []store.Shard {
	return storetest.WrapShards(o.Store, func(_ int, next store.Shard) store.Shard { return competingShard{next, o} })
}

type competingShard struct {
	store.Shard
	competingStore
}

func (s competingShard) Claim(ctx context.Context, tok store.Token, r store.ClaimRequest) (store.ClaimResult, error) {
	time.Sleep(20 * time.Millisecond)
	return s.Shard.Claim(ctx, tok, r)
}

// closeFromAnotherProcess claims the lane's probe and settles it as delivered.
func closeFromAnotherProcess(t *testing.T, s store.Store) {
	t.Helper()
	q := job.Queue{Namespace: "default", Topic: "shop", Lane: "a"}
	for range 10_000 {
		c, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), store.ClaimRequest{
			Queues: []store.QueueClaim{{Queue: q, Max: 1, Timeout: time.Second}}, Max: 1, MaxBytes: 1 << 20, Margin: time.Second,
		})
		require.NoError(t, err)
		if len(c.Jobs) == 1 && c.Jobs[0].Probe {
			h := c.Jobs[0]
			_, _, err := s.Shards()[0].Settle(t.Context(), store.NewToken(), []store.Settlement{{
				Ref: h.Ref(), Queue: q, Lease: h.Lease, Verdict: policy.Verdict{Kind: policy.Delivered},
				Attempt: job.Attempt{Kind: job.KindAttempt, Status: 200}, LaneChange: store.LaneChange{Breaker: store.CloseBreaker},
			}}, nil)
			require.NoError(t, err)
			return
		}
		require.Empty(t, c.Jobs)
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the lane has no probe")
}

func TestBreaker_ClosesWhenSwitchedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := model(), &fakeHost{away: policy.Result{Class: policy.ClassRefused}}
		terms := &changingPolicy{}
		terms.put(breakable)
		carry(t, s)
		fill(t, s, 20, "shop/a")
		run(t, s, h, func(o *pool.Options) { o.Policies = terms })
		time.Sleep(20 * time.Second)
		require.True(t, laneStats(t, s).BreakerOpen)
		off := breakable
		off.Breaker.Failures = new(0)
		terms.put(off)
		time.Sleep(time.Minute)
		require.False(t, laneStats(t, s).BreakerOpen)
	})
}

func TestBreaker_IgnoresSuccessesByPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := model(), &fakeHost{away: policy.Result{Status: 503}}
		terms := breakable
		terms.Success.Status = []string{"503"}
		carry(t, s)
		fill(t, s, 50, "shop/a")
		run(t, s, h, func(o *pool.Options) { o.Policies = fixedPolicy(terms.WithDefaults(policy.Builtin())) })
		time.Sleep(5 * time.Second)
		require.Equal(t, 50, h.count())
		require.False(t, laneStatsOrNone(t, s).BreakerOpen)
	})
}
