package pool_test

import (
	"context"
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
)

// fakeHost is a receiver that is up or down, and records the times of requests.
type fakeHost struct {
	mu    sync.Mutex
	up    bool
	takes time.Duration
	away  policy.Result
	asked []time.Time
	now   int
	most  int
}

func (h *fakeHost) Deliver(context.Context, job.Request) policy.Result {
	h.mu.Lock()
	h.asked = append(h.asked, time.Now())
	h.now++
	h.most = max(h.most, h.now)
	up, takes, away := h.up, h.takes, h.away
	h.mu.Unlock()
	time.Sleep(takes)
	h.mu.Lock()
	h.now--
	h.mu.Unlock()
	if up {
		return policy.Result{Status: 200}
	}
	return away
}

func (h *fakeHost) set(up bool) (asked int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.up, h.most = up, h.now
	return len(h.asked)
}

func (h *fakeHost) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.asked)
}

// breakable is a topic with a short ladder and a breaker.
var breakable = policy.Topic{
	Ladder: policy.Ladder{time.Second}, Retries: new(1000), Jitter: new(0.0), MaxAge: 24 * time.Hour,
	Breaker: policy.Breaker{Failures: new(5), Open: 30 * time.Second},
}

// startOutage runs processes against a host that is down.
func startOutage(t *testing.T, processes, jobs int, away policy.Result) (store.Store, *fakeHost) {
	t.Helper()
	s, h := model(), &fakeHost{away: away, takes: 5 * time.Millisecond}
	_, err := store.PutTopic(t.Context(), s, store.Topic{Namespace: "default", Name: "shop", Policy: breakable})
	require.NoError(t, err)
	carry(t, s)
	fill(t, s, jobs, "shop/a")
	for range processes {
		run(t, s, h, withPolicy(breakable))
	}
	return s, h
}

func laneStats(t *testing.T, s store.Store) store.LaneStats {
	t.Helper()
	lanes, err := s.Shards()[0].LaneStats(t.Context(), "default", "shop", "", 10)
	require.NoError(t, err)
	require.Len(t, lanes, 1)
	return lanes[0]
}

func TestBreaker_OpensForAllProcessesAndAdmitsOneProbe(t *testing.T) {
	for name, away := range map[string]policy.Result{
		"refused": {Class: policy.ClassRefused}, "bad gateway": {Status: 502},
		"a timeout": {Class: policy.ClassTimeoutHeaders},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, h := startOutage(t, 3, 300, away)
				time.Sleep(20 * time.Second)
				first := h.count()
				require.GreaterOrEqual(t, first, 5)
				require.LessOrEqual(t, first, 60, "each process counts for itself, and what was under way still ends")
				require.True(t, laneStats(t, s).BreakerOpen)

				h.set(false)
				time.Sleep(10 * time.Minute)
				probes := h.count() - first
				require.GreaterOrEqual(t, probes, 18)
				require.LessOrEqual(t, probes, 21, "one probe each time the breaker has been open for 30 s")
				require.Equal(t, 1, h.most, "never two at once")
			})
		})
	}
}

func TestBreaker_LaneRecoversFromOneSlotToItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := startOutage(t, 2, 300, policy.Result{Class: policy.ClassRefused})
		time.Sleep(5 * time.Minute)
		asked := h.set(true)
		time.Sleep(40 * time.Second)
		h.mu.Lock()
		times := h.asked[asked:]
		h.mu.Unlock()
		require.GreaterOrEqual(t, len(times), 300)
		require.False(t, laneStatsOrNone(t, s).BreakerOpen)
		early := 0
		for _, at := range times[1:] {
			if at.Sub(times[0]) <= 2*5*time.Millisecond+time.Millisecond {
				early++
			}
		}
		require.LessOrEqual(t, early, 6, "the first answers are waited for")
		stats, err := s.Shards()[0].TopicStats(t.Context(),
			store.StatsFilter{Namespace: "default", Topics: []string{"shop"}})
		require.NoError(t, err)
		require.EqualValues(t, 300, stats[0].Delivered)
		require.Zero(t, stats[0].OpenBreakers)
	})
}

func laneStatsOrNone(t *testing.T, s store.Store) store.LaneStats {
	t.Helper()
	lanes, err := s.Shards()[0].LaneStats(t.Context(), "default", "shop", "", 10)
	require.NoError(t, err)
	if len(lanes) == 0 {
		return store.LaneStats{}
	}
	return lanes[0]
}

// Only unavailable results of its own receiver open a lane's breaker: neither other results nor other lanes' outages.
func TestBreaker_IgnoresAnswers(t *testing.T) {
	for _, answer := range []policy.Result{{Status: 500}, {Status: 404}, {Status: 505}, {Class: policy.ClassBlocked}} {
		synctest.Test(t, func(t *testing.T) {
			s, h := startOutage(t, 1, 50, answer)
			time.Sleep(20 * time.Second)
			if answer.Class == policy.ClassNone {
				require.False(t, laneStats(t, s).BreakerOpen, "%+v", answer)
				require.Greater(t, h.count(), 500)
			} else {
				require.False(t, laneStatsOrNone(t, s).BreakerOpen)
			}
		})
	}
}

func TestBreaker_NeverOpensWithZeroFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := model(), &fakeHost{away: policy.Result{Class: policy.ClassRefused}}
		topicPolicy := breakable
		topicPolicy.Breaker.Failures = new(0)
		carry(t, s)
		fill(t, s, 20, "shop/a")
		run(t, s, h, withPolicy(topicPolicy))
		time.Sleep(20 * time.Second)
		require.Greater(t, h.count(), 200)
		require.False(t, laneStats(t, s).BreakerOpen)
	})
}

// All jobs of a lost host end at their max_age, each with a callback.
func TestBreaker_JobsOfALostHostEndAtMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := testkit.Of(500, 2000)
		s, h := model(), &fakeHost{away: policy.Result{Class: policy.ClassTimeoutDial}, takes: time.Second}
		topicPolicy := policy.Topic{MaxAge: 2 * time.Hour}
		_, err := store.PutTopic(t.Context(), s, store.Topic{Namespace: "default", Name: "shop", Policy: topicPolicy})
		require.NoError(t, err)
		carry(t, s)
		fill(t, s, jobs, "shop/a")
		var mu sync.Mutex
		reasons := make(map[string]policy.Reason)
		run(t, s, h, func(o *pool.Options) {
			o.Policies = fixedPolicy(topicPolicy.WithDefaults(policy.Builtin()))
			o.Callbacks = func(end pool.AttemptEvent) []store.NewJob {
				mu.Lock()
				defer mu.Unlock()
				reasons[end.Job.ID] = end.Verdict.Reason
				return nil
			}
		})
		time.Sleep(3 * time.Hour)
		stats, err := s.Shards()[0].TopicStats(t.Context(),
			store.StatsFilter{Namespace: "default", Topics: []string{"shop"}})
		require.NoError(t, err)
		require.EqualValues(t, jobs, stats[0].Dead)
		require.Less(t, h.count(), 400, "the host is spared")
		require.Len(t, reasons, jobs)
		for id, reason := range reasons {
			require.Equal(t, policy.ReasonMaxAge, reason, id)
		}
	})
}

func TestCooldown_AppliesToTheLaneOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		carry(t, s)
		var mu sync.Mutex
		asked := map[string][]time.Time{}
		d := delivererFunc(func(_ context.Context, r job.Request) policy.Result {
			mu.Lock()
			defer mu.Unlock()
			asked[r.Queue.Lane] = append(asked[r.Queue.Lane], time.Now())
			if r.Queue.Lane == "busy" && len(asked["busy"]) == 1 {
				return policy.Result{Status: 429, RetryAfter: 20 * time.Second}
			}
			return policy.Result{Status: 200}
		})
		insertOn(t, s, 0, "busy-1", "shop", "busy")
		run(t, s, d, withPolicy(policy.Topic{Ladder: policy.Ladder{time.Second}}))
		time.Sleep(time.Second)
		insertOn(t, s, 0, "busy-2", "shop", "busy")
		insertOn(t, s, 0, "free-1", "shop", "free")
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, asked["free"], 1)
		require.Len(t, asked["busy"], 3)
		require.Less(t, asked["free"][0].Sub(asked["busy"][0]), 2*time.Second)
		for _, at := range asked["busy"][1:] {
			require.GreaterOrEqual(t, at.Sub(asked["busy"][0]), 20*time.Second)
			require.Less(t, at.Sub(asked["busy"][0]), 21*time.Second)
		}
	})
}

// A process that tripped a breaker does not hold it against the lane when another process had the probe.
func TestBreaker_CountsFromZeroWhenAnotherProcessClosedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := model(), &fakeHost{away: policy.Result{Class: policy.ClassRefused}, takes: 5 * time.Millisecond}
		carry(t, s)
		fill(t, s, 5, "shop/a")
		competing := wrap(s, func(next store.Shard) store.Shard { return competingShard{next} })
		run(t, competing, h, withPolicy(breakable))
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

// competingShard lets another process, which polls every 5 ms, claim due jobs.
type competingShard struct{ store.Shard }

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
			Queues: []store.QueueClaim{{Queue: q, Max: 1, Timeout: time.Second}}, Max: 1,
			MaxBytes: 1 << 20, Margin: time.Second,
		})
		require.NoError(t, err)
		if len(c.Jobs) == 1 && c.Jobs[0].Probe {
			h := c.Jobs[0]
			_, _, err := s.Shards()[0].Settle(t.Context(), store.NewToken(), []store.Settlement{{
				Ref: h.Ref(), Queue: q, Lease: h.Lease, Verdict: policy.Verdict{Kind: policy.Delivered},
				Attempt:    job.Attempt{Kind: job.KindAttempt, Status: 200},
				LaneChange: store.LaneChange{Breaker: store.CloseBreaker},
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
		topicPolicy := &changingPolicy{}
		topicPolicy.put(breakable)
		carry(t, s)
		fill(t, s, 20, "shop/a")
		run(t, s, h, func(o *pool.Options) { o.Policies = topicPolicy })
		time.Sleep(20 * time.Second)
		require.True(t, laneStats(t, s).BreakerOpen)
		off := breakable
		off.Breaker.Failures = new(0)
		topicPolicy.put(off)
		time.Sleep(time.Minute)
		require.False(t, laneStats(t, s).BreakerOpen)
	})
}

func TestBreaker_IgnoresSuccessesByPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := model(), &fakeHost{away: policy.Result{Status: 503}}
		topicPolicy := breakable
		topicPolicy.Success.Status = []string{"503"}
		carry(t, s)
		fill(t, s, 50, "shop/a")
		run(t, s, h, withPolicy(topicPolicy))
		time.Sleep(5 * time.Second)
		require.Equal(t, 50, h.count())
		require.False(t, laneStatsOrNone(t, s).BreakerOpen)
	})
}
