package pool_test

import (
	"context"
	"fmt"
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

// settleRecorder records when jobs are settled, and counts releases.
type settleRecorder struct {
	store.Store
	mu      sync.Mutex
	settled map[string]time.Time
	back    int
}

func (m *settleRecorder) Shards() []store.Shard {
	return storetest.WrapShards(m.Store,
		func(_ int, next store.Shard) store.Shard { return settleRecorderShard{next, m} })
}

type settleRecorderShard struct {
	store.Shard
	*settleRecorder
}

func (s settleRecorderShard) Settle(
	ctx context.Context, tok store.Token, it []store.Settlement, n *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	s.mu.Lock()
	for i := range it {
		s.settled[it[i].Ref.ID] = time.Now()
		if it[i].Verdict.Kind == policy.Released {
			s.back++
		}
	}
	s.mu.Unlock()
	return s.Shard.Settle(ctx, tok, it, n)
}

func newSettleRecorder(s store.Store) *settleRecorder {
	return &settleRecorder{Store: s, settled: map[string]time.Time{}}
}

// Neither wake-ups of another topic nor a batch of its settlements may delay a topic's settlements beyond the limit.
func TestBatching_HasATimeLimit(t *testing.T) {
	for _, topic := range []string{"mail", "orders"} { // without prefetched jobs, and with
		t.Run(topic, func(t *testing.T) { testPrefetchBeside(t, topic) })
	}
}

func testPrefetchBeside(t *testing.T, topic string) {
	synctest.Test(t, func(t *testing.T) {
		s := newSettleRecorder(newUnlimitedModel())
		var mu sync.Mutex
		ended, began := map[string]time.Time{}, map[string]time.Time{}
		fill(t, s, 2000, "orders/x")
		run(t, s, delivererFunc(func(_ context.Context, r job.Request) policy.Result {
			mu.Lock()
			began[r.Ref.ID] = time.Now()
			mu.Unlock()
			time.Sleep(5 * time.Millisecond)
			mu.Lock()
			ended[r.Ref.ID] = time.Now()
			mu.Unlock()
			return policy.Result{Status: 200}
		}), workers(20))
		time.Sleep(100 * time.Millisecond)
		registered := map[string]time.Time{}
		for i := range 150 {
			lane := fmt.Sprintf("l%d", i)
			if topic == "mail" {
				registered["mail-"+lane+"-0"] = time.Now()
			}
			fill(t, s, 1, topic+"/"+lane)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		for id, at := range ended {
			require.LessOrEqual(t, s.settled[id].Sub(at), 3*time.Millisecond, id)
		}
		for id, at := range registered {
			require.LessOrEqual(t, began[id].Sub(at), 3*time.Millisecond, id)
		}
	})
}

func TestPrefetch_LeavesWorkersForLanesWithARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newUnlimitedModel(), newGauge(10*time.Millisecond)
		putLane(t, s, "orders", "rated", policy.Lane{LaneRate: policy.Rate{Starts: 10, Per: time.Second}})
		fill(t, s, 100, "orders/rated")
		fill(t, s, 10_000, "orders/fast")
		carry(t, s)
		run(t, s, g, workers(20))
		time.Sleep(4 * time.Second)
		require.GreaterOrEqual(t, g.count("orders/rated"), 36)
		require.GreaterOrEqual(t, g.count("orders/fast"), 7_200)
	})
}

// Prefetched jobs of one shard must not take the place of another shard's jobs of the topic.
func TestPrefetch_LeavesWorkersForLanesOfOtherShards(t *testing.T) {
	for name, rated := range map[string]bool{"rated": true, "slow": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := storetest.NewModel(storetest.ModelOptions{
					Shards: 2, Defaults: policy.Topic{LaneConcurrency: 1000}.WithDefaults(policy.Builtin()),
				})
				if rated {
					_, err := store.PutLane(t.Context(), s.Shards()[1], store.NewToken(), store.Lane{
						Queue:    queueOf("orders", "right"),
						Settings: policy.Lane{LaneRate: policy.Rate{Starts: 10, Per: time.Second}},
					})
					require.NoError(t, err)
				}
				fill(t, s, 10_000, "orders/left")
				for i := range 100 {
					insertOn(t, s, 1, fmt.Sprintf("other-%d", i), "orders", "right")
				}
				carry(t, s)
				g := newGauge(10 * time.Millisecond)
				if !rated {
					g.took = func(r job.Request) time.Duration {
						if r.Queue.Lane == "right" {
							return 1500 * time.Millisecond
						}
						return 10 * time.Millisecond
					}
				}
				run(t, newSlowStore(s, time.Millisecond, time.Millisecond), g, workers(10))
				time.Sleep(8 * time.Second)
				// Of 80 starts; each waits until what was prefetched before, for 50 ms, has been attempted.
				require.GreaterOrEqual(t, g.count("orders/right"), map[bool]int{true: 60, false: 30}[rated])
				require.GreaterOrEqual(t, g.count("orders/left"), 1000)
			})
		})
	}
}

// Attempts that end together, and none for a while, have not ended quickly.
func TestPrefetch_SkipsSlowReceivers(t *testing.T) {
	for _, took := range []time.Duration{300 * time.Millisecond, time.Second, 5 * time.Second} {
		t.Run(took.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, g := newSettleRecorder(newSlowStore(newUnlimitedModel(), time.Millisecond, time.Millisecond)),
					newGauge(took)
				fill(t, s, 2000, "orders/x")
				carry(t, s)
				run(t, s, g, workers(20))
				time.Sleep(20 * took)
				require.GreaterOrEqual(t, g.count(""), 18*20)
				s.mu.Lock()
				defer s.mu.Unlock()
				require.LessOrEqual(t, s.back, 200, "at first, while trips are taken to be slow")
			})
		})
	}
}

func TestPrefetch_LeavesRoomForOtherTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &settleCounter{Store: newUnlimitedModel(), took: 10 * time.Millisecond}
		var hang atomic.Bool
		var mu sync.Mutex
		began := map[string]time.Time{}
		over := make(chan struct{})
		defer close(over)
		fill(t, s, 5000, "a/x")
		carry(t, s)
		run(t, s, delivererFunc(func(_ context.Context, r job.Request) policy.Result {
			mu.Lock()
			began[r.Queue.Topic] = time.Now()
			mu.Unlock()
			if r.Queue.Topic == "a" && hang.Load() {
				<-over
			}
			time.Sleep(5 * time.Millisecond)
			return policy.Result{Status: 200}
		}), func(o *pool.Options) { workers(32)(o); o.Workers = 64 })
		time.Sleep(300 * time.Millisecond)
		hang.Store(true)
		time.Sleep(6 * time.Millisecond)
		registered := map[string]time.Time{}
		for i := range 40 {
			topic := fmt.Sprintf("b%d", i)
			registered[topic] = time.Now()
			fill(t, s, 1, topic+"/x")
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		for topic, at := range registered {
			require.LessOrEqual(t, began[topic].Sub(at), 60*time.Millisecond, topic)
		}
	})
}

func TestPrefetch_ReleasesJobsOfALaneInCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnlimitedModel()
		var made, after atomic.Int64
		fill(t, s, 3000, "orders/x")
		carry(t, s)
		run(t, s, delivererFunc(func(context.Context, job.Request) policy.Result {
			time.Sleep(5 * time.Millisecond)
			if made.Add(1) > 1000 {
				after.Add(1)
				return policy.Result{Status: 429, RetryAfter: time.Minute}
			}
			return policy.Result{Status: 200}
		}), workers(20))
		time.Sleep(10 * time.Second)
		require.Positive(t, after.Load())
		require.LessOrEqual(t, after.Load(), int64(20), "those that were under way")
	})
}

func TestPrefetch_ReleasesJobsOfAPausedTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := newUnlimitedModel(), newGauge(5*time.Millisecond)
		policies := &changingPolicy{}
		policies.put(policy.Topic{Workers: 20, LaneConcurrency: 1000})
		fill(t, s, 3000, "orders/x")
		run(t, s, g, func(o *pool.Options) { o.Policies = policies })
		time.Sleep(200 * time.Millisecond)
		synctest.Wait() // no attempt is just beginning
		policies.put(policy.Topic{Workers: 20, LaneConcurrency: 1000, Paused: true})
		before := g.count("")
		_, err := store.PutTopic(t.Context(), s,
			store.Topic{Namespace: "default", Name: "orders", Policy: policy.Topic{Paused: true}})
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Equal(t, before, g.count(""))
	})
}
