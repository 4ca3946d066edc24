package pool_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// recordingObserver records the ends of attempts.
type recordingObserver struct {
	mu     sync.Mutex
	events []pool.AttemptEvent
}

func (e *recordingObserver) AttemptEnded(event pool.AttemptEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, event)
}

func (e *recordingObserver) all() []pool.AttemptEvent {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.events)
}

func (e *recordingObserver) count() int { return len(e.all()) }

// callbackRecorder returns an outbox job for each end, and records the ends.
type callbackRecorder struct {
	mu   sync.Mutex
	ends []pool.AttemptEvent
}

func (b *callbackRecorder) callbacks(end pool.AttemptEvent) []store.NewJob {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends = append(b.ends, end)
	var e store.NewJob
	e.ID, e.Queue = fmt.Sprintf("%s|%s|%d", end.Job.ID, end.Verdict.Kind, end.Job.Generation), queueOf("_callbacks",
		"a")
	return []store.NewJob{e}
}

func (b *callbackRecorder) all() []pool.AttemptEvent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ends)
}

// outboxIDs returns the ids in the outbox, sorted.
func outboxIDs(t *testing.T, s store.Store) []string {
	t.Helper()
	c, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
	require.NoError(t, err)
	ids := []string{}
	for _, e := range c.Outbox {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestCallbacks_AreWrittenOnceWithTheSettlement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := model(), &callbackRecorder{}
		carry(t, s)
		var mu sync.Mutex
		made := map[string]int{}
		d := delivererFunc(func(_ context.Context, r job.Request) policy.Result {
			mu.Lock()
			made[r.Ref.ID]++
			n := made[r.Ref.ID]
			mu.Unlock()
			switch {
			case r.Ref.ID == "failing":
				return policy.Result{Status: 500}
			case r.Ref.ID == "late" && n < 3:
				return policy.Result{Status: 500}
			case r.Ref.ID == "cancelled":
				_, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), r.Ref, store.Cancellation{})
				require.NoError(t, err)
				return policy.Result{Status: 410}
			case r.Ref.ID == "lost" && n == 1:
				time.Sleep(time.Minute) // longer than its lease
			case r.Ref.ID == "released" && n == 1:
				return policy.Result{Class: policy.ClassShutdown}
			}
			return policy.Result{Status: 200}
		})
		for _, id := range []string{"good", "failing", "late", "cancelled", "lost", "released"} {
			insertOn(t, s, 0, id, "orders", id)
		}
		run(t, s, d, func(o *pool.Options) {
			o.Callbacks = b.callbacks
			o.Policies = fixedPolicy(
				policy.Topic{Ladder: policy.Ladder{time.Second, time.Second}}.WithDefaults(policy.Builtin()),
			)
		})
		time.Sleep(10 * time.Minute)
		require.Equal(t, job.Cancelled, get(t, s, "cancelled").State)
		lost := get(t, s, "lost")
		require.Equal(t, job.Delivered, lost.State)
		require.Equal(t, 2, lost.Attempts)
		require.Equal(t, 2, made["lost"])
		require.Equal(t, []string{
			"failing|dead|0", "good|delivered|0", "late|delivered|0", "lost|delivered|0", "released|delivered|0",
		}, outboxIDs(t, s), "not of the settlement that was refused, nor of the one that a cancellation overtook")
		ends := map[string]int{}
		for _, end := range b.all() {
			ends[end.Job.ID]++
			require.NotZero(t, end.Terms.Timeout, "terms are resolved")
			require.Equal(t, job.KindAttempt, end.Record.Kind)
			require.Equal(t, end.Job.Attempts+1, end.Record.N)
		}
		require.Equal(t,
			map[string]int{"good": 1, "failing": 1, "late": 1, "cancelled": 1, "lost": 2, "released": 1}, ends)
	})
}

func TestCallbacks_HaveNoAttemptForAJobWithoutARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, observed, g := model(), &callbackRecorder{}, &recordingObserver{}, newGauge(0)
		var expiring store.NewJob
		expiring.ID, expiring.Queue, expiring.URL, expiring.ExpiresIn = "expired", queueOf("orders", "a"),
			"https://x.example/", time.Minute
		_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{expiring})
		require.NoError(t, err)
		insertOn(t, s, 0, "old", "aging", "a")
		time.Sleep(time.Hour)
		run(t, s, g, func(o *pool.Options) {
			o.Callbacks, o.Observer = b.callbacks, observed
			o.Policies = &fakeSettings{topics: map[string]policy.Topic{"aging": {MaxAge: 30 * time.Minute}}}
		})
		time.Sleep(time.Second)
		require.Zero(t, g.count(""))
		ends := b.all()
		require.Len(t, ends, 2)
		for _, end := range ends {
			require.Zero(t, end.Record)
			require.Equal(t, policy.Dead, end.Verdict.Kind)
			reason := map[string]policy.Reason{"expired": policy.ReasonExpired, "old": policy.ReasonMaxAge}[end.Job.ID]
			require.Equal(t, reason, end.Verdict.Reason)
			j := get(t, s, end.Job.ID)
			require.Equal(t, reason, j.Reason)
			require.Zero(t, j.Attempts)
			require.Empty(t, j.History)
		}
		require.Len(t, observed.all(), 2)
		for _, e := range observed.all() {
			require.Nil(t, e.Result)
			require.Equal(t, policy.Dead, e.Verdict.Kind)
			require.Zero(t, e.Late)
		}
	})
}

// The process's clock may be wrong: an attempt's lateness is by the store's clock.
func TestObserver_MeasuresLatenessByTheStoresClock(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, 0, time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := storetest.NewModel(storetest.ModelOptions{
					Defaults: policy.Builtin(), Now: func() time.Time { return time.Now().Add(skew) },
				})
				g, observed := newGauge(time.Second), &recordingObserver{}
				carry(t, s)
				fill(t, s, 1, "orders/waited")
				time.Sleep(3 * time.Second)
				run(t, newSlowStore(s, 40*time.Millisecond, 0), g, func(o *pool.Options) { o.Observer = observed })
				time.Sleep(5 * time.Second)
				fill(t, s, 1, "bills/fresh")
				time.Sleep(5 * time.Second)
				late := map[string]time.Duration{}
				for _, e := range observed.all() {
					require.Equal(t, "default", e.Namespace)
					require.Equal(t, policy.Delivered, e.Verdict.Kind)
					require.Equal(t, 200, e.Result.Status)
					late[e.Topic] = e.Late
				}
				require.Len(t, observed.all(), 2)
				require.InDelta(t, 3040*time.Millisecond, late["orders"], float64(5*time.Millisecond),
					"what the claim took counts, what the attempt took does not")
				require.InDelta(t, 40*time.Millisecond, late["bills"], float64(5*time.Millisecond))
			})
		})
	}
}

// claimCounter counts claimed jobs, each claim once, and fails some of the calls.
type claimCounter struct {
	store.Store
	mu      sync.Mutex
	claimed int
}

func (c *claimCounter) Shards() []store.Shard {
	return storetest.WrapShards(c.Store,
		func(_ int, next store.Shard) store.Shard { return claimCounterShard{next, c} })
}

type claimCounterShard struct {
	store.Shard
	*claimCounter
}

func (c *claimCounter) note(claimed store.ClaimResult, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.claimed += len(claimed.Jobs)
	}
}

func (c claimCounterShard) Claim(
	ctx context.Context, tok store.Token, r store.ClaimRequest,
) (store.ClaimResult, error) {
	claimed, err := c.Shard.Claim(ctx, tok, r)
	c.note(claimed, err)
	return claimed, err
}

func (c claimCounterShard) Settle(
	ctx context.Context, tok store.Token, it []store.Settlement, n *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	errs, claimed, err := c.Shard.Settle(ctx, tok, it, n)
	c.note(claimed, err)
	return errs, claimed, err
}

func TestObserver_SeesEachClaimedJobOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := model()
		s := &claimCounter{Store: storetest.Faulty(base, storetest.Share(11, 0.1))}
		observed, g := &recordingObserver{}, newGauge(10*time.Millisecond)
		verdicts := map[policy.Kind]int{}
		i := 0
		d := delivererFunc(func(ctx context.Context, r job.Request) policy.Result {
			result := g.Deliver(ctx, r)
			g.mu.Lock()
			defer g.mu.Unlock()
			if i++; result.Class == "" {
				result = []policy.Result{
					{Status: 200},
					{Status: 500},
					{Status: 410},
					{Class: policy.ClassShutdown},
				}[i%4]
			}
			return result
		})
		fill(t, base, 300, "orders/a", "orders/b", "bills/a")
		stop := run(t, s, d, func(o *pool.Options) {
			o.Observer = observed
			o.Policies = fixedPolicy(policy.Topic{
				Ladder:  policy.Ladder{time.Second},
				Retries: new(3),
			}.WithDefaults(policy.Builtin()))
		})
		time.Sleep(2 * time.Second)
		require.NoError(t, stop())
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Greater(t, s.claimed, 500)
		require.Equal(t, s.claimed, observed.count())
		for _, e := range observed.all() {
			verdicts[e.Verdict.Kind]++
		}
		require.Len(t, verdicts, 4, "of every kind")
	})
}

func TestState_CountsAttemptsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(10*time.Second)
		p := pool.New(pool.Options{
			Store: s, Deliverer: g, Policies: fixedPolicy(policy.Builtin()), Workers: 7,
			Logger: slog.New(slog.DiscardHandler),
		})
		require.Equal(t, pool.State{Workers: 7}, p.State())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		time.Sleep(time.Second)
		require.Equal(t, pool.State{Workers: 7}, p.State())
		fill(t, s, 1, "orders/a", "orders/b", "bills/a")
		time.Sleep(time.Second)
		require.Equal(t, pool.State{Workers: 7, InFlight: 3}, p.State())
		fill(t, s, 1, "c/a", "d/a", "e/a", "f/a", "g/a", "h/a") // more topics: one may not have all workers
		time.Sleep(time.Second)
		require.Equal(t, pool.State{Workers: 7, InFlight: 7}, p.State(), "full")
		time.Sleep(time.Minute)
		require.Equal(t, pool.State{Workers: 7}, p.State())
		require.Equal(t, 9, g.count(""))
		cancel()
		require.NoError(t, <-ended)
		require.Equal(t, pool.State{Workers: 7}, p.State())
		require.Equal(t, 2048, pool.New(pool.Options{Store: s, Deliverer: g, Policies: fixedPolicy{}}).State().Workers)
	})
}

// A claim whose answer was lost is made again under its token: what it brings was counted at the first time, so it may
// not begin later than that allows.
func TestRate_HoldsWhenRepliesAreLost(t *testing.T) {
	for name, topicPolicy := range map[string]policy.Topic{
		"lane":  {LaneRate: policy.Rate{Starts: 20, Per: time.Second}},
		"topic": {Rate: policy.Rate{Starts: 20, Per: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d := newCalls(t, topicPolicy)
				d.took = func() time.Duration { return 10 * time.Millisecond }
				carry(t, s)
				fill(t, s, 500, "calls/a")
				var mu sync.Mutex
				n := 0
				flaky := storetest.Faulty(s, func(method string) storetest.Fault {
					mu.Lock()
					defer mu.Unlock()
					if n++; n%5 == 0 && (method == "Claim" || method == "Settle") {
						return storetest.LostReply
					}
					return storetest.None
				})
				for range 2 {
					run(t, flaky, d, withPolicy(topicPolicy))
				}
				time.Sleep(2 * time.Minute)
				d.mu.Lock()
				defer d.mu.Unlock()
				rate := topicPolicy.Rate
				if topicPolicy.LaneRate.Limited() {
					rate = topicPolicy.LaneRate
				}
				requireRate(t, rate, d.by["a"], "the lane")
				require.Len(t, d.by["a"], 500, "each is delivered in the end")
			})
		})
	}
}

func TestAttempt_WaitsWhileTheTopicsPolicyIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g, observed := model(), newGauge(0), &recordingObserver{}
		insertOn(t, s, 0, "old", "orders", "a")
		time.Sleep(10 * 24 * time.Hour)
		policies := &staleSettings{fakeSettings: &fakeSettings{topics: map[string]policy.Topic{
			"orders": policy.Topic{MaxAge: 48 * time.Hour}.WithDefaults(policy.Builtin()),
		}}}
		carry(t, s)
		run(t, s, g, func(o *pool.Options) { o.Policies, o.Observer = policies, observed })
		time.Sleep(time.Minute)
		require.False(t, get(t, s, "old").State.Ended())
		for _, e := range observed.all() {
			require.Equal(t, policy.Released, e.Verdict.Kind)
			require.Nil(t, e.Result)
		}
		policies.set(func() { policies.known = true })
		time.Sleep(time.Minute)
		require.Equal(t, policy.ReasonMaxAge, get(t, s, "old").Reason)
	})
}

// staleSettings is fakeSettings that are not read yet.
type staleSettings struct {
	*fakeSettings
	known bool
}

func (s *staleSettings) Sync(context.Context, int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

func TestLog_NamesANamespaceThatIsNotTheDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := model(), &testkit.Log{}
		fill(t, s, 1, "orders/a")
		entry := store.NewJob{New: job.New{Spec: job.Spec{
			ID: "other", Queue: job.Queue{Namespace: "shop", Topic: "orders", Lane: "a"},
			URL: "https://x.example/", Method: "POST",
		}}}
		_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry})
		require.NoError(t, err)
		stop := run(t, s, newGauge(0), func(o *pool.Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
		time.Sleep(time.Second)
		require.NoError(t, stop())
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "msg=attempt") {
				require.Equal(t, strings.Contains(line, "job=other"), strings.Contains(line, "namespace=shop"), line)
			}
		}
		require.Contains(t, log.String(), "namespace=shop")
	})
}

func TestLog_BoundsTheLinesOfAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := model(), &testkit.Log{}
		fill(t, s, 30, "orders/a", "orders/b", "orders/c", "orders/d", "orders/e")
		stop := run(t, s, newGauge(0), func(o *pool.Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
		time.Sleep(999 * time.Millisecond)
		require.Equal(t, 100, strings.Count(log.String(), "msg=attempt"))
		require.NotContains(t, log.String(), "suppressed")
		time.Sleep(time.Second)
		fill(t, s, 1, "orders/last")
		time.Sleep(time.Second)
		require.Equal(t, 101, strings.Count(log.String(), "msg=attempt"))
		require.Contains(t, log.String(), "suppressed=50")
		fill(t, s, 30, "orders/f", "orders/g", "orders/h", "orders/i")
		time.Sleep(999 * time.Millisecond)
		require.NoError(t, stop())
		require.Contains(t, log.String(), `msg="attempts left out of the log before the end" suppressed=20`)
	})
}
