package dispatcher_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func TestDelivery_IsOnTimeAfterTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		time.Sleep(100 * time.Millisecond)
		r.register(t, job.New{Delay: 5 * time.Millisecond})
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Len(t, rec.calls(), 1)
		require.Less(t, rec.calls()[0].at.Sub(rec.calls()[0].DueAt), 20*time.Millisecond)
	})
}

func TestWakeups_ReachTheCarrierOfABusyProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		busy := &receiver{answer: func(ctx context.Context, r job.Request) policy.Result {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return policy.Result{Class: policy.ClassShutdown}
		}}
		a := start(t, dispatcher.Options{Store: shared{m}, Deliverer: busy, Workers: 1})
		a.register(t, job.New{Spec: job.Spec{Terms: policy.Terms{Timeout: 2 * time.Hour}}})
		time.Sleep(10 * time.Second)
		require.Len(t, busy.calls(), 1)
		idle := &receiver{answer: status(200)}
		start(t, dispatcher.Options{Store: shared{m}, Deliverer: idle})
		time.Sleep(10*time.Second + 100*time.Millisecond)
		var worst time.Duration
		for i := range 5 {
			a.register(t,
				job.New{Spec: job.Spec{Queue: job.Queue{Lane: fmt.Sprint("l", i)}}, Delay: 5 * time.Millisecond})
			time.Sleep(5*time.Second + 77*time.Millisecond)
		}
		for _, c := range idle.calls() {
			worst = max(worst, c.at.Sub(c.DueAt))
		}
		require.Less(t, worst, 20*time.Millisecond)
	})
}

// failingTopics fails or hangs reading policies.
type failingTopics struct {
	store.Store
	n    *atomic.Int32
	hang bool
	read *atomic.Int32
}

func (f failingTopics) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	if f.read != nil {
		f.read.Add(1)
	}
	if f.hang {
		<-ctx.Done()
		return store.Changes{}, ctx.Err()
	}
	if f.n != nil && f.n.Add(-1) >= 0 {
		return store.Changes{}, &store.UnavailableError{Reason: "away"}
	}
	return f.Store.ListChanges(ctx, kind, since)
}

func TestPolicies_AreReadBeforeAVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		rec := &receiver{answer: status(200)}
		a := start(t, dispatcher.Options{Store: shared{m}, Deliverer: rec})
		_, err := a.PutTopic(t.Context(),
			store.Topic{Namespace: "default", Name: "bills", Policy: policy.Topic{URL: "https://till.example/"}})
		require.NoError(t, err)
		got := a.Register(t.Context(),
			[]job.New{{Spec: job.Spec{Queue: job.Queue{Topic: "bills"}}, Delay: time.Minute}})[0]
		require.NoError(t, got.Err)
		require.NoError(t, a.stop())
		n := new(atomic.Int32)
		n.Store(1)
		b := start(t, dispatcher.Options{Store: shared{failingTopics{Store: m, n: n}}, Deliverer: rec})
		time.Sleep(time.Hour)
		j := b.get(t, got.Job.Ref())
		require.Equal(t, job.Delivered, j.State, "%s", j.Reason)
	})
}

func TestRegister_ReadsPoliciesOnce(t *testing.T) {
	m := storetest.NewModel(storetest.ModelOptions{})
	read := new(atomic.Int32)
	d, err := dispatcher.New(dispatcher.Options{
		Store:     failingTopics{Store: m, read: read},
		Deliverer: &receiver{answer: status(200)}, Declared: true, Logger: quiet,
	})
	require.NoError(t, err)
	var jobs []job.New
	for i := range 500 {
		jobs = append(jobs,
			job.New{Spec: job.Spec{URL: "https://x.example", Queue: job.Queue{Topic: "typo"}, ID: fmt.Sprint(i)}})
	}
	d.Register(t.Context(), jobs)
	require.Less(t, read.Load(), int32(5))
}

func TestDefaults_MayBePartial(t *testing.T) {
	m := storetest.NewModel(storetest.ModelOptions{})
	d, err := dispatcher.New(dispatcher.Options{
		Store: m, Deliverer: &receiver{answer: status(200)},
		Defaults: policy.Topic{Workers: 4}, Logger: quiet,
	})
	require.NoError(t, err)
	require.Equal(t, 4, d.Effective(t.Context(), "", policy.Topic{}).Workers)
}

func TestIsolation_SlowReceiversDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{}
		rec.answer = func(ctx context.Context, r job.Request) policy.Result {
			if strings.HasPrefix(r.Queue.Lane, "slow") {
				select {
				case <-time.After(9 * time.Second):
					return policy.Result{Status: 200}
				case <-ctx.Done():
					return policy.Result{Class: policy.ClassShutdown}
				}
			}
			time.Sleep(5 * time.Millisecond)
			return policy.Result{Status: 200}
		}
		r := start(t, dispatcher.Options{Deliverer: rec})
		var jobs []job.New
		for i := range 400 {
			for l := range 10 {
				jobs = append(jobs, job.New{Spec: job.Spec{
					URL:   "https://x.example/",
					Queue: job.Queue{Lane: fmt.Sprint("slow-", l)},
				}, Delay: time.Duration(i) * time.Millisecond})
			}
		}
		for host := range 200 {
			for i := range 6 {
				jobs = append(jobs,
					job.New{Spec: job.Spec{URL: "https://x.example/", Queue: job.Queue{Lane: fmt.Sprint("good-",
						host)}}, Delay: time.Duration(i*10_000+host*17) * time.Millisecond})
			}
		}
		r.registerAll(t, jobs)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		good := 0
		var worst time.Duration
		for _, c := range rec.calls() {
			if strings.HasPrefix(c.Queue.Lane, "good") {
				good++
				worst = max(worst, c.at.Sub(c.DueAt))
			}
		}
		require.Equal(t, 200*6, good)
		require.Less(t, worst, 250*time.Millisecond)
	})
}

// stallingStore blocks calls while it is stalled.
type stallingStore struct {
	store.Store
	mu   sync.Mutex
	open chan struct{}
}

func (g *stallingStore) Shards() []store.Shard {
	return storetest.WrapShards(g.Store, func(_ int, next store.Shard) store.Shard { return stallingShard{next, g} })
}

type stallingShard struct {
	store.Shard
	*stallingStore
}

func (g *stallingStore) wait(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open == nil {
		return nil
	}
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g stallingShard) Carry(ctx context.Context, tok store.Token, r store.CarryOptions) (store.CarryResult, error) {
	if err := g.wait(ctx); err != nil {
		return store.CarryResult{}, err
	}
	return g.Shard.Carry(ctx, tok, r)
}

func (g stallingShard) Settle(
	ctx context.Context, tok store.Token, it []store.Settlement, n *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	if err := g.wait(ctx); err != nil {
		return nil, store.ClaimResult{}, err
	}
	time.Sleep(2 * time.Millisecond)
	return g.Shard.Settle(ctx, tok, it, n)
}

func TestFaults_StalledStoreRepeatsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		g := &stallingStore{Store: m}
		rec := &receiver{answer: func(context.Context, job.Request) policy.Result {
			time.Sleep(5 * time.Second)
			return policy.Result{Status: 200}
		}}
		r := start(t, dispatcher.Options{Store: g, Deliverer: rec})
		time.Sleep(10 * time.Second)
		r.register(t, job.New{})
		time.Sleep(time.Second)
		open := make(chan struct{})
		g.mu.Lock()
		g.open = open
		g.mu.Unlock()
		time.Sleep(20 * time.Second)
		g.mu.Lock()
		g.open = nil
		g.mu.Unlock()
		close(open)
		time.Sleep(time.Minute)
		require.Len(t, rec.calls(), 1)
	})
}

// lateClaim delays the replies of claims and the sending of settlements.
type lateClaim struct {
	store.Store
	claim, settle time.Duration
}

func (l lateClaim) Shards() []store.Shard {
	return storetest.WrapShards(l.Store, func(_ int, next store.Shard) store.Shard { return lateClaimShard{next, l} })
}

type lateClaimShard struct {
	store.Shard
	lateClaim
}

func (s lateClaimShard) Claim(ctx context.Context, tok store.Token, r store.ClaimRequest) (store.ClaimResult, error) {
	c, err := s.Shard.Claim(ctx, tok, r)
	time.Sleep(s.claim)
	return c, err
}

func (s lateClaimShard) Settle(
	ctx context.Context, tok store.Token, it []store.Settlement, n *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	time.Sleep(s.settle)
	return s.Shard.Settle(ctx, tok, it, n)
}

func TestFaults_SlowStoreGetsLongerLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		rec := &receiver{answer: func(_ context.Context, r job.Request) policy.Result {
			time.Sleep(r.Timeout - time.Millisecond)
			return policy.Result{Status: 200}
		}}
		r := start(t,
			dispatcher.Options{Store: lateClaim{m, 4900 * time.Millisecond, 300 * time.Millisecond}, Deliverer: rec})
		made := r.register(t, job.New{})
		time.Sleep(time.Minute)
		require.Len(t, rec.calls(), 1)
		require.Equal(t, job.Delivered, r.get(t, made.Ref()).State)
	})
}

// stuckInsertStore is a store whose Insert never returns.
type stuckInsertStore struct{ store.Store }

func (s stuckInsertStore) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return stuckInsertShard{next, s} })
}

type stuckInsertShard struct {
	store.Shard
	stuckInsertStore
}

func (stuckInsertShard) Insert(ctx context.Context, _ store.Token, _ []store.NewJob) ([]store.InsertResult, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("insert: %w", context.Cause(ctx))
}

func TestRegister_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		d, err := dispatcher.New(dispatcher.Options{
			Store:     stuckInsertStore{m},
			Deliverer: &receiver{answer: status(200)}, Logger: quiet,
		})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		got := d.Register(ctx, []job.New{{Spec: job.Spec{URL: "https://x.example"}}})
		require.ErrorIs(t, got[0].Err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		time.Sleep(time.Minute)
	})
}

// oldRevisionStore returns an old revision from claims, as a shard with an old copy does.
type oldRevisionStore struct {
	store.Store
	read, known *atomic.Int32
}

func (o oldRevisionStore) Shards() []store.Shard {
	return storetest.WrapShards(o.Store, func(_ int, next store.Shard) store.Shard { return oldRevisionShard{next, o} })
}

type oldRevisionShard struct {
	store.Shard
	of oldRevisionStore
}

func (o oldRevisionShard) Claim(ctx context.Context, tok store.Token, r store.ClaimRequest) (store.ClaimResult, error) {
	c, err := o.Shard.Claim(ctx, tok, r)
	c.Revision--
	return c, err
}

func (o oldRevisionShard) Settle(
	ctx context.Context, tok store.Token, it []store.Settlement, n *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	e, c, err := o.Shard.Settle(ctx, tok, it, n)
	c.Revision--
	return e, c, err
}

func (o oldRevisionStore) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	if kind == store.KindTopic {
		o.read.Add(1)
	}
	return o.Store.ListChanges(ctx, kind, since)
}

func (o oldRevisionShard) Known(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error) {
	o.of.known.Add(1)
	time.Sleep(time.Millisecond)
	return o.Shard.Known(ctx, refs)
}

func TestPolicies_OlderRevisionCausesNoReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		o := oldRevisionStore{m, new(atomic.Int32), new(atomic.Int32)}
		r := start(t, dispatcher.Options{Store: o, Deliverer: &receiver{answer: status(200)}})
		_, err := r.PutTopic(t.Context(), store.Topic{Namespace: "default", Name: "x"})
		require.NoError(t, err)
		for range 200 {
			r.register(t, job.New{})
			time.Sleep(10 * time.Millisecond)
		}
		require.Less(t, o.read.Load(), int32(5))
	})
}

func TestRegister_LooksUpIDsOnOtherShardsInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{Shards: 16})
		o := oldRevisionStore{m, new(atomic.Int32), new(atomic.Int32)}
		d, err := dispatcher.New(dispatcher.Options{Store: o, Deliverer: &receiver{answer: status(200)}, Logger: quiet})
		require.NoError(t, err)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				d.Register(t.Context(),
					[]job.New{{Spec: job.Spec{ID: fmt.Sprint("id", i), URL: "https://x.example"}, Delay: time.Hour}})
			})
		}
		wg.Wait()
		require.LessOrEqual(t, o.known.Load(), int32(15*3), "one by one it would be 1,500")
	})
}

// Two processes with free workers: an insert by the one that does not lead.
func TestWakeups_ReachAnotherProcesssCarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		rec := &receiver{answer: status(200)}
		a := start(t, dispatcher.Options{Store: shared{m}, Deliverer: rec})
		time.Sleep(10100 * time.Millisecond)
		b := start(t, dispatcher.Options{Store: shared{m}, Deliverer: rec})
		time.Sleep(10100 * time.Millisecond)
		b.register(t, job.New{Delay: 5 * time.Millisecond})
		time.Sleep(2 * time.Second)
		require.Less(t, rec.calls()[0].at.Sub(rec.calls()[0].DueAt), 20*time.Millisecond)
		// takeover: the new leader's listener is in an Wait without Wake
		require.NoError(t, a.stop())
		time.Sleep(1300 * time.Millisecond)
		b.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Lane: "z"}}, Delay: 5 * time.Millisecond})
		time.Sleep(2 * time.Second)
		require.Less(t, rec.calls()[1].at.Sub(rec.calls()[1].DueAt), 20*time.Millisecond)
	})
}

// An outage longer than the memory of tokens.
func TestFaults_OutageLongerThanTokensRepeatsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mode atomic.Int32
		m := storetest.Faulty(storetest.NewModel(storetest.ModelOptions{}), func(string) storetest.Fault {
			return storetest.Fault(mode.Load())
		})
		rec := &receiver{answer: func(context.Context, job.Request) policy.Result {
			time.Sleep(500 * time.Millisecond)
			return policy.Result{Status: 200}
		}}
		r := start(t, dispatcher.Options{Store: m, Deliverer: rec})
		made := r.register(t, job.New{})
		time.Sleep(400 * time.Millisecond)
		mode.Store(int32(storetest.LostReply))
		time.Sleep(700 * time.Millisecond)
		mode.Store(int32(storetest.Before))
		time.Sleep(2 * time.Minute)
		mode.Store(0)
		time.Sleep(2 * time.Minute)
		require.Len(t, rec.calls(), 1)
		require.Equal(t, job.Delivered, r.get(t, made.Ref()).State)
	})
}
