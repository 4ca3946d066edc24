package pool_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// endlessStore has endless queues and free calls, so that benchmarks measure the pool.
type endlessStore struct {
	store.Store
	once   sync.Once
	queues []job.Queue

	call        time.Duration // duration of a call
	concurrency int           // of the only lane; zero: no limit
	claimed     atomic.Int64
}

func (e *endlessStore) Shards() []store.Shard {
	return []store.Shard{endlessShard{endlessStore: e}}
}

type endlessShard struct {
	store.Shard
	*endlessStore
}

func (e endlessShard) Wait(ctx context.Context, _ store.WaitOptions) (wakeup []job.Queue, err error) {
	e.once.Do(func() { wakeup = e.queues })
	if wakeup == nil {
		<-ctx.Done()
	}
	return wakeup, nil
}

func (endlessShard) Notify(context.Context, []job.Queue) error { return nil }

func (endlessShard) ClaimExpired(context.Context, store.Token, store.ClaimExpiredRequest) ([]store.ClaimedJob, error) {
	return nil, nil
}

func (e endlessShard) Claim(_ context.Context, token store.Token, r store.ClaimRequest) (store.ClaimResult, error) {
	var c store.ClaimResult
	time.Sleep(e.call)
	for _, w := range r.Queues {
		n, blocked := w.Max, false
		if e.concurrency > 0 {
			n = max(0, min(n, e.concurrency+w.Ahead-int(e.claimed.Load())))
			blocked = int(e.claimed.Add(int64(n))) >= e.concurrency
		}
		for range n {
			h := store.ClaimedJob{Lease: token, LeaseFor: w.Timeout + r.Margin}
			h.ID, h.Queue, h.URL, h.Method = "job", w.Queue, "https://x.example/", "POST"
			c.Jobs = append(c.Jobs, h)
		}
		c.Queues = append(c.Queues, store.QueueStatus{Queue: w.Queue, More: !blocked, Blocked: blocked})
	}
	return c, nil
}

func (e endlessShard) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	errs := make([]error, len(items))
	e.claimed.Add(-int64(len(items)))
	if next == nil {
		time.Sleep(e.call)
		return errs, store.ClaimResult{}, nil
	}
	claimed, err := e.Claim(ctx, token, *next)
	return errs, claimed, err
}

// countdown delivers at once, and signals when enough jobs were delivered.
type countdown struct {
	mu   sync.Mutex
	left int
	done chan struct{}
	each time.Duration // duration of an attempt
}

func (c *countdown) Deliver(context.Context, job.Request) policy.Result {
	if c.each > 0 {
		time.Sleep(c.each)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.done)
	}
	return policy.Result{Status: 200}
}

// BenchmarkLaneConcurrency measures an attempt in one lane of quick receivers, with calls of a millisecond: where the
// lane has more slots than the topic has workers, as many, and fewer.
func BenchmarkLaneConcurrency(b *testing.B) {
	for _, c := range []struct{ workers, concurrency int }{{64, 512}, {64, 64}, {512, 64}} {
		b.Run(fmt.Sprintf("%d-workers-%d-slots", c.workers, c.concurrency), func(b *testing.B) {
			s := &endlessStore{
				queues: []job.Queue{{Namespace: "default", Topic: "t", Lane: "a"}}, call: time.Millisecond,
				concurrency: c.concurrency,
			}
			topicPolicy := policy.Topic{LaneConcurrency: c.concurrency, Workers: c.workers}
			measureAttempts(b, s, 2048, topicPolicy.WithDefaults(policy.Builtin()), 300*time.Microsecond)
		})
	}
}

// BenchmarkAttempts is what the pool itself costs an attempt, with one lane and with many, where trips bring a few jobs
// and where they bring many ahead of the workers.
func BenchmarkAttempts(b *testing.B) {
	for _, c := range []struct {
		name    string
		lanes   int
		workers int
	}{
		{"1-lane", 1, 64}, {"1000-lanes", 1000, 64}, {"1-lane-ahead", 1, 2048}, {"1000-lanes-ahead", 1000, 2048},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := &endlessStore{}
			for i := range c.lanes {
				s.queues = append(s.queues, job.Queue{Namespace: "default", Topic: "t", Lane: string(rune('a' + i))})
			}
			measureAttempts(b, s, c.workers, policy.Topic{LaneConcurrency: 1000}.WithDefaults(policy.Builtin()), 0)
		})
	}
}

// measureAttempts makes b.N attempts, which take each.
func measureAttempts(b *testing.B, s *endlessStore, workers int, topicPolicy policy.Topic, each time.Duration) {
	b.Helper()
	d := &countdown{left: b.N, done: make(chan struct{}), each: each}
	p := pool.New(pool.Options{
		Store: s, Deliverer: d, Policies: fixedPolicy(topicPolicy), Workers: workers,
		Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	b.ReportAllocs()
	go func() { ended <- p.Run(ctx) }()
	<-d.done
	b.StopTimer()
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
