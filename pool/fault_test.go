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

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// slowShard delays Claim and Settle.
type slowShard struct {
	store.Shard
	claim, settle time.Duration
}

func newSlowStore(s store.Store, claim, settle time.Duration) store.Store {
	return wrap(s, func(next store.Shard) store.Shard { return slowShard{next, claim, settle} })
}

func (s slowShard) Claim(ctx context.Context, tok store.Token, r store.ClaimRequest) (store.ClaimResult, error) {
	c, err := s.Shard.Claim(ctx, tok, r)
	time.Sleep(s.claim)
	return c, err
}

func (s slowShard) Settle(
	ctx context.Context, tok store.Token, it []store.Settlement, n *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	time.Sleep(s.settle)
	return s.Shard.Settle(ctx, tok, it, n)
}

func insertOn(t *testing.T, s store.Store, shard int, id, topic, lane string) {
	var e store.NewJob
	e.ID, e.Queue, e.URL, e.Method = id, job.Queue{Namespace: "default", Topic: topic, Lane: lane},
		"https://x.example/", "POST"
	_, err := s.Shards()[shard].Insert(t.Context(), store.NewToken(), []store.NewJob{e})
	require.NoError(t, err)
}

func TestListener_ResumesAfterAFullProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(10*time.Millisecond)
		run(t, newSlowStore(s, 5*time.Millisecond, 0), g, func(o *pool.Options) { o.Workers = 4 })
		synctest.Wait()
		fill(t, s, 1, "orders/a", "orders/b")
		time.Sleep(2 * time.Millisecond)
		insertOn(t, s, 0, "c", "orders", "c")
		time.Sleep(time.Second)
		require.Equal(t, 3, g.count(""))
		insertOn(t, s, 0, "d", "orders", "d")
		time.Sleep(time.Hour)
		require.Equal(t, 4, g.count(""), "deaf")
	})
}

func TestFairness_TopicWithOneWorkerRetriesALaneThatTimedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(10*time.Millisecond)
		n := 0
		d := delivererFunc(func(ctx context.Context, r job.Request) policy.Result {
			n++
			if n == 1 {
				time.Sleep(r.Timeout)
				return policy.Result{Class: policy.ClassTimeoutHeaders}
			}
			return g.Deliver(ctx, r)
		})
		fill(t, s, 5, "orders/a")
		run(t, s, d, withPolicy(policy.Topic{Workers: 1}))
		time.Sleep(2 * time.Hour)
		require.GreaterOrEqual(t, g.count(""), 4)
	})
}

type delivererFunc func(ctx context.Context, r job.Request) policy.Result

func (d delivererFunc) Deliver(ctx context.Context, r job.Request) policy.Result { return d(ctx, r) }

func TestFairness_FullTopicServesEveryShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{Defaults: policy.Builtin(), Shards: 2})
		g := newGauge(100 * time.Millisecond)
		var queues []string
		for i := range 20 {
			queues = append(queues, fmt.Sprintf("orders/lane-%d", i))
		}
		fill(t, s, 100, queues...) // 2000 jobs x 100 ms / 8 = 25 s
		run(t, newSlowStore(s, time.Millisecond, time.Millisecond), g, withPolicy(policy.Topic{Workers: 8}))
		time.Sleep(time.Second)
		began := time.Now()
		insertOn(t, s, 1, "other", "orders", "other")
		for g.count("orders/other") == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		require.Less(t, time.Since(began), time.Second)
	})
}

func TestFairness_FullProcessServesEveryShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{Defaults: policy.Builtin(), Shards: 2})
		g := newGauge(100 * time.Millisecond)
		var queues []string
		for i := range 20 {
			queues = append(queues, fmt.Sprintf("orders/lane-%d", i))
		}
		fill(t, s, 100, queues...)
		run(t, newSlowStore(s, time.Millisecond, time.Millisecond), g, func(o *pool.Options) { o.Workers = 8 })
		time.Sleep(time.Second)
		began := time.Now()
		insertOn(t, s, 1, "other", "bills", "other")
		for g.count("bills/other") == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		require.Less(t, time.Since(began), time.Second)
	})
}

// poisonedQueueShard rejects claims from the queues of a lane.
type poisonedQueueShard struct {
	store.Shard
	lane string
}

func (p poisonedQueueShard) has(r *store.ClaimRequest) bool {
	if r != nil {
		for _, w := range r.Queues {
			if w.Queue.Lane == p.lane {
				return true
			}
		}
	}
	return false
}

func (p poisonedQueueShard) Claim(
	ctx context.Context, tok store.Token, r store.ClaimRequest,
) (store.ClaimResult, error) {
	if p.has(&r) {
		return store.ClaimResult{}, errors.New("a job's progress cannot be read")
	}
	return p.Shard.Claim(ctx, tok, r)
}

func (p poisonedQueueShard) Settle(
	ctx context.Context, tok store.Token, it []store.Settlement, n *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	if p.has(n) {
		return nil, store.ClaimResult{}, errors.New("a job's progress cannot be read")
	}
	return p.Shard.Settle(ctx, tok, it, n)
}

func TestExchange_QueueThatCannotBeClaimedStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(10*time.Millisecond)
		run(t, wrap(s, func(next store.Shard) store.Shard { return poisonedQueueShard{next, "bad"} }), g, nil)
		insertOn(t, s, 0, "p", "orders", "bad")
		time.Sleep(time.Second)
		insertOn(t, s, 0, "q", "orders", "good")
		time.Sleep(time.Hour)
		require.Equal(t, 1, g.count("orders/good"))
	})
}

func TestStop_DoesNotWaitForADelivererThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		d := delivererFunc(func(ctx context.Context, r job.Request) policy.Result {
			time.Sleep(10 * time.Minute)
			return policy.Result{Status: 200}
		})
		insertOn(t, s, 0, "p", "orders", "a")
		stop := run(t, s, d, nil)
		synctest.Wait()
		began := time.Now()
		require.EqualError(t, stop(), "stop: 1 attempts were not settled; they are repeated when their leases expire")
		require.LessOrEqual(t, time.Since(began), 31*time.Second)
		time.Sleep(10 * time.Minute) // until the deliverer has come back
	})
}

func TestFairness_HangingTopicsLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(5*time.Millisecond)
		bad := newGauge(0)
		bad.took = func(r job.Request) time.Duration { return r.Timeout }
		bad.result = policy.Result{Class: policy.ClassTimeoutHeaders}
		d := delivererFunc(func(ctx context.Context, r job.Request) policy.Result {
			if r.Queue.Topic == "good" {
				return g.Deliver(ctx, r)
			}
			return bad.Deliver(ctx, r)
		})
		var queues []string
		for i := range 20 {
			for j := range processWorkers / 16 {
				queues = append(queues, fmt.Sprintf("bad-%d/lane-%d", i, j))
			}
		}
		fill(t, s, testkit.Of(8, 20), queues...) // more than a lane attempts until the end
		run(t, s, d, func(o *pool.Options) { o.Workers = processWorkers })
		time.Sleep(45 * time.Second) // all are known by now
		var worst time.Duration
		for i := range 20 {
			began := time.Now()
			insertOn(t, s, 0, fmt.Sprintf("g%d", i), "good", "a")
			for g.count("good") <= i {
				time.Sleep(time.Millisecond)
			}
			worst = max(worst, time.Since(began))
			time.Sleep(777 * time.Millisecond)
		}
		require.Less(t, worst, time.Second)
	})
}

// One shard, one process that is full of one topic's backlog: a topic that comes later
func TestListener_FullProcessServesALaterTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		g := newGauge(100 * time.Millisecond)
		var queues []string
		for i := range 20 {
			queues = append(queues, fmt.Sprintf("orders/lane-%d", i))
		}
		fill(t, s, 100, queues...)
		run(t, newSlowStore(s, time.Millisecond, time.Millisecond), g, func(o *pool.Options) { o.Workers = 8 })
		time.Sleep(time.Second)
		began := time.Now()
		insertOn(t, s, 0, "other", "bills", "other")
		for g.count("bills/other") == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		require.Less(t, time.Since(began), time.Second)
	})
}

// falteringStore rejects settlements with a claim, and is unavailable for the first few without one.
type falteringStore struct {
	store.Store
	mu   sync.Mutex
	away int
}

func (f *falteringStore) Shards() []store.Shard {
	return storetest.WrapShards(f.Store, func(_ int, next store.Shard) store.Shard { return falteringShard{next, f} })
}

type falteringShard struct {
	store.Shard
	*falteringStore
}

func (f falteringShard) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	if next != nil {
		return nil, store.ClaimResult{}, errors.New("a job's progress cannot be read")
	}
	f.mu.Lock()
	f.away--
	away := f.away >= 0
	f.mu.Unlock()
	if away {
		return nil, store.ClaimResult{}, &store.UnavailableError{Reason: "away"}
	}
	return f.Shard.Settle(ctx, token, items, nil)
}

func TestExchange_SettlementsRetriedOneByOneSurviveAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(10*time.Millisecond)
		fill(t, s, 200, "orders/a", "orders/b")
		stop := run(t, &falteringStore{Store: s, away: 5}, g, func(o *pool.Options) { o.Workers = 4 })
		time.Sleep(10 * time.Minute)
		require.Equal(t, 400, g.count("orders"), "each once, and no slot is lost")
		require.NoError(t, stop(), "everything was settled")
		stats, err := s.Shards()[0].TopicStats(t.Context(),
			store.StatsFilter{Namespace: "default", Topics: []string{"orders"}})
		require.NoError(t, err)
		require.EqualValues(t, 400, stats[0].Delivered)
	})
}

// unsettleableShard rejects every call that settles one job.
type unsettleableShard struct {
	store.Shard
	id string
}

func newUnsettleableStore(s store.Store, id string) store.Store {
	return wrap(s, func(next store.Shard) store.Shard { return unsettleableShard{next, id} })
}

func (u unsettleableShard) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	for _, item := range items {
		if item.Ref.ID == u.id {
			return nil, store.ClaimResult{}, errors.New("a job's progress cannot be read")
		}
	}
	return u.Shard.Settle(ctx, token, items, next)
}

func TestExchange_JobThatCannotBeSettledKeepsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(10*time.Millisecond)
		fill(t, s, 100, "orders/a")
		stop := run(t, newUnsettleableStore(s, "orders-a-1"), g, func(o *pool.Options) { o.Workers = 4 })
		time.Sleep(time.Minute)
		require.Equal(t, 100, g.count("orders"))
		require.NoError(t, stop())
		stats, err := s.Shards()[0].TopicStats(t.Context(),
			store.StatsFilter{Namespace: "default", Topics: []string{"orders"}})
		require.NoError(t, err)
		require.EqualValues(t, 99, stats[0].Delivered)
	})
}

// Claims of one queue each find no store before the grace is over.
func TestStop_LogsAbandonedClaimsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := storetest.Faulty(model(), func(method string) storetest.Fault {
			if method == "Claim" {
				return storetest.Before
			}
			return storetest.None
		})
		s, log := newSingleQueueStore(away), &testkit.Log{}
		fill(t, s, 1, "orders/a", "orders/b", "bills/a")
		p, stop := start(t, s, newGauge(0),
			func(o *pool.Options) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
		time.Sleep(time.Second)
		require.NotZero(t, p.State().InFlight)
		require.NoError(t, stop(), "no attempt was made")
		require.Zero(t, p.State().InFlight)
		require.NotContains(t, log.String(), "claim rejected, queue skipped")
		require.Equal(t, 1, strings.Count(log.String(), `level=WARN msg="claims abandoned`))
		require.Contains(t, log.String(), "queues=3")
	})
}
