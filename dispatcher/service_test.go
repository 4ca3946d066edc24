package dispatcher_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api"
	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/dispatcher/livetail"
	"github.com/ringback/ringback/dispatcher/tenancy"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

var _ api.Service = api.NewService((*dispatcher.Service)(nil))

// registerWith registers jobs, each on the store of its namespace.
func registerWith(t *testing.T, s *dispatcher.Service, jobs ...job.New) (results []store.RoutedResult) {
	t.Helper()
	for _, n := range jobs {
		d, err := s.FindStore(t.Context(), n.Namespace)
		if err != nil {
			results = append(results, store.RoutedResult{Err: err})
			continue
		}
		results = append(results, d.Register(t.Context(), []job.New{n})...)
	}
	return results
}

// countingReceiver is a deliverer that answers 200 and counts attempts by namespace.
type countingReceiver struct {
	mu   sync.Mutex
	seen map[string]int
}

func (r *countingReceiver) Deliver(_ context.Context, request job.Request) policy.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[strings.TrimPrefix(request.URL, "https://")]++
	return policy.Result{Status: 200, StartedAt: time.Now()}
}

// attempts returns the number of attempts by namespace.
func (r *countingReceiver) attempts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.seen)
}

// engine is a model that can be down.
type engine struct {
	store.Store

	down atomic.Bool
}

func newEngine() *engine {
	e := new(engine)
	e.Store = storetest.Faulty(storetest.NewModel(storetest.ModelOptions{Shards: 2}), func(string) storetest.Fault {
		if e.down.Load() {
			return storetest.Before
		}
		return storetest.None
	})
	return e
}

func (e *engine) Ping(ctx context.Context) error {
	if e.down.Load() {
		return &store.UnavailableError{Reason: "the store is down"}
	}
	return e.Store.Ping(ctx)
}

func (e *engine) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	if e.down.Load() {
		return store.Changes{}, &store.UnavailableError{Reason: "the store is down"}
	}
	return e.Store.ListChanges(ctx, kind, since)
}

// serviceFixture is a running Service on the models main and eu. The namespace shop is on eu.
type serviceFixture struct {
	*dispatcher.Service
	*countingReceiver

	main, eu *engine
	log      *testkit.Log
}

// startService runs a Service. open decides whether eu can be opened; nil: it is open from the start.
func startService(t *testing.T, open func() error) *serviceFixture {
	t.Helper()
	f := &serviceFixture{
		main: newEngine(), eu: newEngine(), log: new(testkit.Log),
		countingReceiver: &countingReceiver{seen: make(map[string]int)},
	}
	log := slog.New(slog.NewTextHandler(f.log, nil))
	opts := dispatcher.Options{
		Deliverer: f.countingReceiver, Owner: store.NewLeaseOwner(),
		OtherStores: []string{"eu"}, Logger: log,
	}
	dispatch := func(s store.Store) *dispatcher.Dispatcher {
		opts.Store = s
		d, err := dispatcher.New(opts)
		require.NoError(t, err)
		return d
	}
	main := dispatch(f.main)
	opts.Registry = main.Registry
	eu := dispatcher.OtherStore{Name: "eu"}
	if open == nil {
		eu.Dispatcher = dispatch(f.eu)
	}
	eu.Open = func(context.Context) (*dispatcher.Dispatcher, error) {
		if err := open(); err != nil {
			return nil, err
		}
		return dispatch(f.eu), nil
	}
	f.Service = dispatcher.NewService(main, []dispatcher.OtherStore{eu}, log)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, f.main.Close())
		require.NoError(t, f.eu.Close())
	})
	_, err := f.PutNamespace(t.Context(), job.Namespace{Name: "shop", Store: "eu"}, 0)
	require.NoError(t, err)
	return f
}

// newJobOn is a job whose URL is its namespace.
func newJobOn(namespace string) job.New {
	return job.New{Spec: job.Spec{
		ID: "same", URL: "https://" + namespace,
		Queue: job.Queue{Namespace: namespace, Topic: "orders"},
	}}
}

// on returns the Dispatcher of a namespace.
func (f *serviceFixture) on(t *testing.T, namespace string) *dispatcher.Dispatcher {
	t.Helper()
	d, err := f.FindStore(t.Context(), namespace)
	require.NoError(t, err)
	return d
}

// state returns the state of the job of a namespace; empty: there is none.
func (f *serviceFixture) state(t *testing.T, namespace string) job.State {
	t.Helper()
	j, err := f.on(t, namespace).Get(t.Context(), job.Ref{Namespace: namespace, ID: "same"})
	if errors.Is(err, store.ErrNotFound) {
		return ""
	}
	require.NoError(t, err)
	return j.State
}

// jobsOn counts the jobs of a namespace on a store.
func jobsOn(t *testing.T, s store.Store, namespace string) (n int64) {
	t.Helper()
	for _, shard := range s.Shards() {
		totals, err := shard.Totals(t.Context(), namespace)
		require.NoError(t, err)
		n += totals.Registered
	}
	return n
}

func TestService_DeliversOnBothStoresAndKeepsThemApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startService(t, nil)
		require.Equal(t, capacity.Holder{Namespace: "shop", Store: "eu"}, f.HolderOf(t.Context(), "shop"))
		require.Equal(t, capacity.Holder{Namespace: "default", Store: "main"}, f.HolderOf(t.Context(), "default"))
		results := registerWith(t, f.Service, newJobOn("default"), newJobOn("shop"), newJobOn("default"))
		require.Equal(t, store.Created, results[0].Outcome)
		require.Equal(t, store.Created, results[1].Outcome)
		require.Equal(t, store.Existing, results[2].Outcome)
		require.Equal(t, "shop", results[1].Job.Namespace)
		time.Sleep(time.Second)
		require.Equal(t, map[string]int{"default": 1, "shop": 1}, f.attempts())
		require.Equal(t, job.Delivered, f.state(t, "default"))
		require.Equal(t, job.Delivered, f.state(t, "shop"))
		require.EqualValues(t, 1, jobsOn(t, f.main, "default"))
		require.Zero(t, jobsOn(t, f.main, "shop"))
		require.EqualValues(t, 1, jobsOn(t, f.eu, "shop"))
		require.Zero(t, jobsOn(t, f.eu, "default"))
		j, err := f.on(t, "shop").Get(t.Context(), job.Ref{Namespace: "shop", ID: "same"})
		require.NoError(t, err)
		require.Equal(t, f.Process(), j.History[0].Process, "one process has one name on all stores")
	})
}

func TestService_GoesOnWhileAnotherStoreIsDown(t *testing.T) {
	for _, c := range []struct{ down, up string }{{"default", "shop"}, {"shop", "default"}} {
		t.Run(c.down, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := startService(t, nil)
				stores := map[string]*engine{"default": f.main, "shop": f.eu}
				waiting := newJobOn(c.down)
				waiting.ID, waiting.Delay = "waiting", time.Minute
				require.NoError(t, registerWith(t, f.Service, waiting)[0].Err)
				stores[c.down].down.Store(true)

				results := registerWith(t, f.Service, newJobOn(c.down), newJobOn(c.up))
				require.ErrorIs(t, results[0].Err, store.ErrUnavailable)
				require.NoError(t, results[1].Err)
				time.Sleep(2 * time.Minute)
				require.Equal(t, map[string]int{c.up: 1}, f.attempts())
				for _, ready := range f.Readiness(t.Context()) {
					if (ready.Store == "main") == (c.down == "default") {
						require.ErrorIs(t, ready.Err, store.ErrUnavailable)
					} else {
						require.NoError(t, ready.Err)
					}
				}

				stores[c.down].down.Store(false)
				time.Sleep(10 * time.Second)
				require.Equal(t, map[string]int{c.up: 1, c.down: 1}, f.attempts(), "the job that waited is delivered")
			})
		})
	}
}

func TestService_OpensAStoreThatWasDownAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		f := startService(t, func() error {
			if !up.Load() {
				return &store.UnavailableError{Reason: "connection refused", Err: errors.New("dial 10.0.0.1")}
			}
			return nil
		})
		results := registerWith(t, f.Service, newJobOn("default"), newJobOn("shop"))
		require.NoError(t, results[0].Err)
		require.ErrorIs(t, results[1].Err, store.ErrUnavailable)
		_, err := f.FindStore(t.Context(), "shop")
		require.ErrorIs(t, err, store.ErrUnavailable)
		time.Sleep(10 * time.Second)
		require.Equal(t, map[string]int{"default": 1}, f.attempts())
		all := f.Readiness(t.Context())
		require.NoError(t, all[0].Err)
		require.EqualError(t, all[1].Err, "the store eu could not be opened yet: connection refused")
		require.Equal(t, []store.Readiness{{Store: "eu", Err: all[1].Err}}, f.OtherStores(t.Context()))
		workers := f.State().Workers

		up.Store(true)
		time.Sleep(3 * time.Second)
		require.NoError(t, registerWith(t, f.Service, newJobOn("shop"))[0].Err)
		time.Sleep(time.Second)
		require.Equal(t, job.Delivered, f.state(t, "shop"))
		require.NoError(t, f.Readiness(t.Context())[1].Err)
		require.Equal(t, []store.Readiness{{Store: "eu"}}, f.OtherStores(t.Context()))
		require.Equal(t, 2*workers, f.State().Workers)
		require.Zero(t, jobsOn(t, f.main, "shop"))
	})
}

func TestService_RefusesANamespaceOnAStoreThatItDoesNotHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startService(t, nil)
		_, err := tenancy.New(f.main, slog.New(slog.DiscardHandler), "asia").PutNamespace(t.Context(),
			job.Namespace{Name: "tokyo", Store: "asia"}, 0)
		require.NoError(t, err)
		for range 3 {
			err := registerWith(t, f.Service, newJobOn("tokyo"))[0].Err
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.ErrorContains(t, err, "namespace tokyo is on the store asia, which this process does not have: "+
				"start it with --store asia=URL")
		}
		_, err = f.FindStore(t.Context(), "tokyo")
		require.ErrorIs(t, err, store.ErrUnavailable, "nobody knows what it has there")
		require.Zero(t, jobsOn(t, f.main, "tokyo"))
		require.Equal(t, 1, strings.Count(f.log.String(), "store=asia"), f.log.String())

		err = registerWith(t, f.Service, newJobOn("unknown"))[0].Err
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Zero(t, jobsOn(t, f.main, "unknown"))
	})
}

// A process that has the main store alone, and delivers only.
func TestService_LogsAtItsStartWhichStoreIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startService(t, nil)
		var logged testkit.Log
		log := slog.New(slog.NewTextHandler(&logged, nil))
		d, err := dispatcher.New(dispatcher.Options{Store: f.main, Deliverer: f.countingReceiver, Logger: log})
		require.NoError(t, err)
		alone := dispatcher.NewService(d, nil, log)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- alone.Run(ctx) }()
		time.Sleep(time.Second)
		err = registerWith(t, alone, newJobOn("shop"))[0].Err
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, "the namespace shop is on the store eu, which this process does not have")
		require.NoError(t, registerWith(t, alone, newJobOn("default"))[0].Err)
		stop()
		require.NoError(t, <-ended)
		require.Equal(t, 1, strings.Count(logged.String(), "namespace=shop store=eu"), logged.String())
		require.Zero(t, jobsOn(t, f.main, "shop"))
	})
}

func TestService_FindsAStoreWithoutAllocation(t *testing.T) {
	f := startService(t, nil)
	for _, namespace := range []string{"default", "shop"} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if _, err := f.FindStore(t.Context(), namespace); err != nil {
				t.Error(err)
			}
		}), namespace)
	}
}

func TestDeleteNamespace_LooksAtItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startService(t, nil)
		later := newJobOn("shop")
		later.Delay = time.Hour
		require.NoError(t, registerWith(t, f.Service, later)[0].Err)
		_, err := f.on(t, "shop").DeleteNamespace(t.Context(), store.NamespaceDeletion{Name: "shop"})
		_, inUse := errors.AsType[*job.NamespaceInUseError](err)
		require.True(t, inUse)
		done, err := f.on(t, "shop").DeleteNamespace(t.Context(), store.NamespaceDeletion{Name: "shop", Purge: true})
		require.NoError(t, err)
		require.Equal(t, int64(1), done.Cancelled)
	})
}

func TestService_WatchesTheStoreOfANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startService(t, nil)
		var watched []*livetail.Listener
		for _, namespace := range []string{"default", "shop"} {
			l, err := f.on(t, namespace).Listen(t.Context(),
				livetail.Filter{Namespace: namespace, Verdict: "delivered"})
			require.NoError(t, err)
			defer l.Close()
			watched = append(watched, l)
		}
		listeners, skipped := f.LiveTail()
		require.Equal(t, 2, listeners)
		require.Zero(t, skipped)
		registerWith(t, f.Service, newJobOn("shop"))
		time.Sleep(time.Second)
		events, _, err := watched[0].Next(t.Context())
		require.NoError(t, err)
		require.Empty(t, events)
		events, _, err = watched[1].Next(t.Context())
		require.NoError(t, err)
		require.Len(t, events, 1)
		require.Equal(t, "shop", events[0].Namespace)
	})
}

func TestService_DoesNotShowADriversErrorToClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startService(t, func() error { return errors.New("redis at 10.0.0.1 has another number of shards") })
		time.Sleep(time.Second)
		require.EqualError(t, f.Readiness(t.Context())[1].Err,
			"the store eu could not be opened yet: the process's log says why")
	})
}

// A process that has had no request when main fails.
func TestService_KnowsTheNamespacesFromItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startService(t, nil)
		opts := dispatcher.Options{
			Store: f.main, RegisterOnly: true, OtherStores: []string{"eu"}, Logger: slog.New(slog.DiscardHandler),
		}
		main, err := dispatcher.New(opts)
		require.NoError(t, err)
		opts.Store, opts.Registry = f.eu, main.Registry
		eu, err := dispatcher.New(opts)
		require.NoError(t, err)
		second := dispatcher.NewService(main, []dispatcher.OtherStore{{Name: "eu", Dispatcher: eu}}, opts.Logger)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- second.Run(ctx) }()
		synctest.Wait()
		f.main.down.Store(true)
		time.Sleep(time.Minute)
		require.NoError(t, registerWith(t, second, newJobOn("shop"))[0].Err)
		known, err := second.CachedNamespaces(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, []string{"default", "shop"}, []string{known[0].Name, known[1].Name})
		_, err = second.Namespaces(t.Context(), "", 10)
		require.ErrorIs(t, err, store.ErrUnavailable)
		f.main.down.Store(false)
		stop()
		require.NoError(t, <-ended)
	})
}

func TestService_StopsWhenAStoreStopsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := dispatcher.Options{
			RegisterOnly: true, OtherStores: []string{"eu"},
			Logger: slog.New(slog.DiscardHandler),
		}
		dispatch := func(s store.Store) *dispatcher.Dispatcher {
			opts.Store = s
			d, err := dispatcher.New(opts)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return d
		}
		main := dispatch(newEngine())
		opts.Registry = main.Registry
		eu := dispatch(newEngine())
		ctx, stop := context.WithCancel(t.Context())
		stop()
		require.NoError(t, eu.Run(ctx))
		others := []dispatcher.OtherStore{{Name: "eu", Dispatcher: eu}}
		err := dispatcher.NewService(main, others, opts.Logger).Run(t.Context())
		require.EqualError(t, err, "store eu: a dispatcher runs once")
	})
}

func TestFindStore_AllocatesNothing(t *testing.T) {
	main := newEngine()
	t.Cleanup(func() { require.NoError(t, main.Close()) })
	d, err := dispatcher.New(dispatcher.Options{Store: main, RegisterOnly: true, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s := dispatcher.NewService(d, nil, slog.New(slog.DiscardHandler))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if found, err := s.FindStore(t.Context(), job.DefaultNamespace); err != nil || found != d {
			t.Error("it is not found")
		}
	}))
	require.Equal(t, capacity.Holder{Namespace: "default"}, s.HolderOf(t.Context(), "default"), "one needs no share")
}
