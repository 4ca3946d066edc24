package pool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixedPolicy gives every topic one policy.
type fixedPolicy policy.Topic

func (f fixedPolicy) Topic(string, string) policy.Topic { return policy.Topic(f) }
func (fixedPolicy) Sync(context.Context, int64) bool    { return true }

func (fixedPolicy) Credentials(string, string) (job.Credentials, error) {
	return job.Credentials{}, nil
}
func (fixedPolicy) Refresh(context.Context)               {}
func (fixedPolicy) Signer(store.Lane) (job.Signer, error) { return nil, nil }
func (fixedPolicy) OpenHeader(job.Queue, string, string) (job.HeaderSecret, error) {
	return job.HeaderSecret{}, errors.New("nothing is sealed")
}

// withPolicy returns the option of a policy for every topic, completed by the built-in one.
func withPolicy(topicPolicy policy.Topic) func(*pool.Options) {
	return func(o *pool.Options) { o.Policies = fixedPolicy(topicPolicy.WithDefaults(policy.Builtin())) }
}

// gaugeDeliverer is a slow deliverer that counts attempts in flight.
type gaugeDeliverer struct {
	took   func(job.Request) time.Duration
	result policy.Result

	mu     sync.Mutex
	now    map[string]int // by topic, by "topic/lane", and "" for all
	most   map[string]int
	total  map[string]int
	starts []job.Request
}

func newGauge(took time.Duration) *gaugeDeliverer {
	return &gaugeDeliverer{
		took:   func(job.Request) time.Duration { return took },
		result: policy.Result{Status: 200},
		now:    map[string]int{}, most: map[string]int{}, total: map[string]int{},
	}
}

func (g *gaugeDeliverer) Deliver(ctx context.Context, r job.Request) policy.Result {
	keys := []string{"", r.Queue.Topic, r.Queue.Topic + "/" + r.Queue.Lane}
	g.mu.Lock()
	for _, k := range keys {
		g.now[k]++
		g.total[k]++
		g.most[k] = max(g.most[k], g.now[k])
	}
	g.starts = append(g.starts, r)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, k := range keys {
			g.now[k]--
		}
	}()
	select {
	case <-time.After(g.took(r)):
		return g.result
	case <-ctx.Done():
		return policy.Result{Class: policy.ClassShutdown}
	}
}

// count is how many attempts were begun, peak how many were in flight at most, of a topic, a "topic/lane", or "" of
// all.
func (g *gaugeDeliverer) count(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.total[key]
}

func (g *gaugeDeliverer) peak(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.most[key]
}

// reset forgets the counts, but not the attempts in flight.
func (g *gaugeDeliverer) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.total)
	clear(g.most)
}

func (g *gaugeDeliverer) requests() []job.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]job.Request(nil), g.starts...)
}

// run starts a pool over a store and returns how to stop it.
func run(t *testing.T, s store.Store, g pool.Deliverer, adapt func(*pool.Options)) (stop func() error) {
	t.Helper()
	_, stop = start(t, s, g, adapt)
	return stop
}

func start(t *testing.T, s store.Store, g pool.Deliverer, adapt func(*pool.Options)) (p *pool.Pool, stop func() error) {
	t.Helper()
	opts := pool.Options{
		Store: s, Deliverer: g, Policies: fixedPolicy(policy.Builtin()),
		Logger: slog.New(slog.DiscardHandler),
	}
	if adapt != nil {
		adapt(&opts)
	}
	p = pool.New(opts)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() { cancel(); err = <-ended })
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return p, stop
}

func model() store.Store {
	return storetest.NewModel(storetest.ModelOptions{Defaults: policy.Builtin()})
}

// wrap returns a store with wrapped shards.
func wrap(s store.Store, shard func(next store.Shard) store.Shard) store.Store {
	return wrappedStore{s, shard}
}

type wrappedStore struct {
	store.Store
	shard func(next store.Shard) store.Shard
}

func (w wrappedStore) Shards() []store.Shard {
	return storetest.WrapShards(w.Store, func(_ int, next store.Shard) store.Shard { return w.shard(next) })
}

// fill registers n due jobs in each of the queues named "topic/lane".
func fill(t *testing.T, s store.Store, n int, queues ...string) {
	t.Helper()
	fillFrom(t, s, 0, n, queues...)
}

// fillFrom is fill with ids that count from first.
func fillFrom(t *testing.T, s store.Store, first, n int, queues ...string) {
	t.Helper()
	var entries []store.NewJob
	for i := first; i < first+n; i++ {
		for _, name := range queues {
			topic, lane, _ := strings.Cut(name, "/")
			var e store.NewJob
			e.ID = fmt.Sprintf("%s-%s-%d", topic, lane, i)
			e.Queue = job.Queue{Namespace: "default", Topic: topic, Lane: lane}
			e.URL, e.Method = "https://x.example/", "POST"
			entries = append(entries, e)
		}
	}
	for start := 0; start < len(entries); start += store.MaxBatch {
		_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(),
			entries[start:min(start+store.MaxBatch, len(entries))])
		require.NoError(t, err)
	}
}

func TestWorkers_BoundATopicsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(10*time.Millisecond)
		var queues []string
		for i := range 40 {
			queues = append(queues, fmt.Sprintf("orders/lane-%d", i))
		}
		fill(t, s, 25, queues...)
		run(t, s, g, withPolicy(policy.Topic{Workers: 20}))
		time.Sleep(10 * time.Second)
		require.Equal(t, 1000, g.count("orders"))
		require.Equal(t, 20, g.peak("orders"), "all workers are used, and no more")
	})
}

func TestWorkers_BoundTheProcessesAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(10*time.Millisecond)
		var queues []string
		for i := range 30 {
			queues = append(queues, fmt.Sprintf("topic-%d/x", i))
		}
		fill(t, s, 30, queues...)
		run(t, s, g, func(o *pool.Options) { o.Workers = 7 })
		time.Sleep(10 * time.Second)
		require.Equal(t, 900, g.count(""))
		require.Equal(t, 7, g.peak(""))
	})
}

func TestBytes_BoundBodiesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(10*time.Millisecond)
		var entries []store.NewJob
		for i := range 200 {
			var e store.NewJob
			e.ID = fmt.Sprintf("big-%d", i)
			e.Queue = job.Queue{Namespace: "default", Topic: "big", Lane: fmt.Sprintf("lane-%d", i%50)}
			e.URL, e.Method, e.Body = "https://x.example/", "POST", make([]byte, 100<<10)
			entries = append(entries, e)
		}
		_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), entries)
		require.NoError(t, err)
		run(t, s, g, func(o *pool.Options) { o.MaxBytes = 1 << 20 })
		time.Sleep(30 * time.Second)
		require.Equal(t, 200, g.count("big"))
		require.LessOrEqual(t, g.peak("big"), 11, "1 MiB holds ten bodies, and one more may have been let in")
	})
}

func TestFairness_AmongTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(10*time.Millisecond)
		fill(t, s, 200, "huge/a", "huge/b", "huge/c", "huge/d", "huge/e")
		fill(t, s, 20, "small/x")
		run(t, s, g, func(o *pool.Options) { o.Workers = 10 })
		time.Sleep(2 * time.Second)
		last := 0
		for i, r := range g.requests() {
			if r.Queue.Topic == "small" {
				last = i
			}
		}
		require.Equal(t, 20, g.count("small"))
		require.Less(t, last, 120, "the small topic waits for its turns, not for the huge one")
	})
}

func TestFairness_AmongLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(10*time.Millisecond)
		fill(t, s, 1000, "orders/busy")
		fill(t, s, 10, "orders/a", "orders/b", "orders/c")
		run(t, s, g, withPolicy(policy.Topic{Workers: 8}))
		time.Sleep(20 * time.Second)
		last := 0
		for i, r := range g.requests() {
			if r.Queue.Lane != "busy" {
				last = i
			}
		}
		require.Equal(t, 1030, g.count("orders"))
		require.Less(t, last, 100)
	})
}

func TestSlots_FallToOneOnTimeoutsAndGrowToTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(100*time.Millisecond)
		fill(t, s, 500, "orders/well")
		bad := newGauge(0)
		bad.took = func(r job.Request) time.Duration { return r.Timeout }
		bad.result = policy.Result{Class: policy.ClassTimeoutHeaders}
		fill(t, s, 20, "orders/bad")
		run(t, s, byLane{"well": g, "bad": bad}, nil)
		time.Sleep(9 * time.Second)
		require.Equal(t, 2, bad.count("orders/bad"), "two slots at first")
		time.Sleep(60 * time.Second)
		require.Equal(t, 1+6, bad.count("orders/bad")-1, "then one at a time")
		require.Equal(t, 500, g.count("orders/well"))
		require.Equal(t, 32, g.peak("orders/well"))
	})
}

// byLane delivers by the lane's name.
type byLane map[string]pool.Deliverer

func (b byLane) Deliver(ctx context.Context, r job.Request) policy.Result {
	return b[r.Queue.Lane].Deliver(ctx, r)
}

func TestLaneConcurrency_IsExactOverProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(10*time.Millisecond)
		fill(t, s, 2000, "orders/one")
		for range 3 {
			run(t, s, g, nil)
		}
		time.Sleep(30 * time.Second)
		require.Equal(t, 2000, g.count("orders/one"))
		require.Equal(t, policy.Builtin().LaneConcurrency, g.peak("orders/one"))
	})
}

func TestRequeue_FullProcessPassesQueuesToAnIdleOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		var queues []string
		for i := range 20 {
			queues = append(queues, fmt.Sprintf("orders/lane-%d", i))
		}
		fill(t, s, 5, queues...)
		full, idle := newGauge(5*time.Second), newGauge(5*time.Second)
		small := withPolicy(policy.Topic{Workers: 4})
		run(t, s, full, small)
		synctest.Wait() // it took every token, and has room for four jobs
		require.Equal(t, 4, full.count("orders"))
		run(t, s, idle, withPolicy(policy.Topic{Workers: 50}))
		time.Sleep(time.Second)
		require.GreaterOrEqual(t, idle.count("orders"), 30)
	})
}

func TestStop_ReleasesLateClaimsUncounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(time.Second)
		fill(t, s, 50, "orders/a")
		stop := run(t, s, g, func(o *pool.Options) { o.Grace = 10 * time.Second })
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, stop())
		stats, err := s.Shards()[0].TopicStats(t.Context(),
			store.StatsFilter{Namespace: "default", Topics: []string{"orders"}})
		require.NoError(t, err)
		require.Zero(t, stats[0].Running)
		require.EqualValues(t, g.count("orders"), stats[0].Delivered, "what was attempted is settled")
		// A second process starts with what the first left.
		run(t, s, g, nil)
		time.Sleep(time.Minute)
		require.Equal(t, 50, g.count("orders"))
	})
}

func TestStop_DoesNotWaitForAnUnavailableStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		away := false
		s := storetest.Faulty(model(), func(string) storetest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if away {
				return storetest.Before
			}
			return storetest.None
		})
		g := newGauge(time.Second)
		fill(t, s, 5, "orders/a")
		stop := run(t, s, g, func(o *pool.Options) { o.Grace = 20 * time.Second })
		synctest.Wait()
		mu.Lock()
		away = true
		mu.Unlock()
		began := time.Now()
		require.ErrorContains(t, stop(), "not settled")
		require.LessOrEqual(t, time.Since(began), 20*time.Second)
	})
}
