package pool_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

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
}

func (e *endlessStore) Shards() []store.Shard {
	return []store.Shard{endlessShard{endlessStore: e}}
}

type endlessShard struct {
	store.Shard
	*endlessStore
}

func (e endlessShard) Wait(ctx context.Context, _ store.WaitOptions) (wakeup store.Wakeup, err error) {
	e.once.Do(func() { wakeup.Queues = e.queues })
	if wakeup.Queues == nil {
		<-ctx.Done()
	}
	return wakeup, nil
}

func (endlessShard) Notify(context.Context, []job.Queue) error { return nil }

func (endlessShard) Claim(_ context.Context, token store.Token, r store.ClaimRequest) (store.ClaimResult, error) {
	var c store.ClaimResult
	for _, w := range r.Queues {
		for range w.Max {
			h := store.ClaimedJob{Lease: token, LeaseFor: w.Timeout + r.Margin}
			h.ID, h.Queue, h.URL, h.Method = "job", w.Queue, "https://x.example/", "POST"
			c.Jobs = append(c.Jobs, h)
		}
		c.Queues = append(c.Queues, store.QueueStatus{Queue: w.Queue, More: true})
	}
	return c, nil
}

func (e endlessShard) Settle(ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest) ([]error, store.ClaimResult, error) {
	errs := make([]error, len(items))
	if next == nil {
		return errs, store.ClaimResult{}, nil
	}
	claimed, err := e.Claim(ctx, token, *next)
	return errs, claimed, err
}

// countdown delivers at once, and tells when enough were.
type countdown struct {
	mu   sync.Mutex
	left int
	done chan struct{}
}

func (c *countdown) Deliver(context.Context, job.Request) policy.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.done)
	}
	return policy.Result{Status: 200}
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
			d := &countdown{left: b.N, done: make(chan struct{})}
			p := pool.New(pool.Options{
				Store: s, Deliverer: d, Policies: fixedPolicy(policy.Topic{LaneConcurrency: 1000}.WithDefaults(policy.Builtin())), Workers: c.workers,
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
		})
	}
}
