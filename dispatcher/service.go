package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/ringback/ringback/dispatcher/tenancy"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// OtherStore is a store of a Service beside the main one.
type OtherStore struct {
	Name string
	// Dispatcher is that of the store, with the main one's Registry; nil: the store was not available.
	Dispatcher *Dispatcher
	// Open opens a store that was not available, and returns its Dispatcher. Run calls it until it succeeds.
	Open func(context.Context) (*Dispatcher, error)
}

// Service serves namespaces on one store or several. Each store has its own Dispatcher, with its own carrier, pool and
// caches, so that a store that is down or slow does not affect the namespaces of the others. Tokens and namespaces are
// on the main store. It is safe for concurrent use.
type Service struct {
	*tenancy.Registry

	log    *slog.Logger
	stores []*openStore
	byName map[string]*openStore
	// unknown has the names of the stores that namespaces name and the process does not have, each logged once.
	unknown sync.Map
}

// openStore is a store and its Dispatcher, nil until the store is opened.
type openStore struct {
	OtherStore

	dispatcher atomic.Pointer[Dispatcher]
	failure    atomic.Pointer[string] // why it could not be opened, without addresses; nil: unknown
}

// NewService returns a Service on the main store and others.
func NewService(main *Dispatcher, others []OtherStore, log *slog.Logger) *Service {
	s := &Service{Registry: main.Registry, log: log, byName: make(map[string]*openStore)}
	for _, o := range append([]OtherStore{{Name: job.MainStore, Dispatcher: main}}, others...) {
		m := &openStore{OtherStore: o}
		m.dispatcher.Store(o.Dispatcher)
		s.stores = append(s.stores, m)
		s.byName[o.Name] = m
	}
	return s
}

// errExited is the error of a Dispatcher whose Run returned without one before it was stopped.
var errExited = errors.New("exited unexpectedly")

// Run carries and delivers on all stores, as Dispatcher.Run. It opens those that were not available. When delivering on
// one store ends early, it stops all and returns an error, so that the process can be started again.
func (s *Service) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(s.stores))
	var running sync.WaitGroup
	for n, m := range s.stores {
		running.Go(func() {
			err := m.run(ctx, s.log)
			if err == nil && ctx.Err() == nil {
				err = errExited
			}
			if err != nil {
				errs[n] = fmt.Errorf("store %s: %w", m.Name, err)
				stop()
			}
		})
	}
	running.Go(func() { s.checkNamespaces(ctx) })
	running.Wait()
	return errors.Join(errs...)
}

// checkNamespaces logs at the start which stores this process should have. A process that only delivers gets no
// requests that would show it. With several stores it loads the namespaces, by which requests find their store if main
// fails later.
func (s *Service) checkNamespaces(ctx context.Context) {
	for again := (store.Backoff{}); ctx.Err() == nil; again.Wait(ctx) {
		missing, err := s.MissingStores(ctx)
		if err != nil {
			continue // the carrier and the pool log that the main store is down
		}
		for name, namespace := range missing {
			s.logUnknown(namespace, name)
		}
		return
	}
}

// logUnknown logs once that a store is unknown.
func (s *Service) logUnknown(namespace, name string) {
	if _, logged := s.unknown.LoadOrStore(name, true); !logged {
		s.log.Error("a namespace is on a store that this process does not have; its requests are answered 503, its "+
			"jobs not delivered here",
			"namespace", namespace, "store", name)
	}
}

// run opens the store, if necessary, and runs its Dispatcher.
func (m *openStore) run(ctx context.Context, log *slog.Logger) error {
	var again store.Backoff
	for m.dispatcher.Load() == nil && ctx.Err() == nil {
		d, err := m.Open(ctx)
		if err == nil {
			log.Info("store opened", "store", m.Name)
			m.dispatcher.Store(d)
		} else if ctx.Err() == nil {
			m.failure.Store(new(openFailure(err)))
			log.Log(ctx, again.Level(), "opening a store failed, retrying; requests to its namespaces are answered 503",
				"store", m.Name, "err", err)
			again.Wait(ctx)
		}
	}
	if d := m.dispatcher.Load(); d != nil {
		return d.Run(ctx)
	}
	return nil
}

// FindStore returns the Dispatcher of a namespace. Errors: store.ErrNotFound, store.ErrUnavailable.
func (s *Service) FindStore(ctx context.Context, namespace string) (*Dispatcher, error) {
	name, err := s.StoreOf(ctx, cmp.Or(namespace, job.DefaultNamespace))
	if err != nil {
		return nil, fmt.Errorf("find the store of namespace %s: %w", namespace, err)
	}
	m := s.byName[name]
	if m == nil {
		s.logUnknown(namespace, name)
		return nil, &store.NotConfiguredError{Namespace: namespace, Store: name}
	}
	if d := m.dispatcher.Load(); d != nil {
		return d, nil
	}
	return nil, m.notOpen()
}

// HolderOf returns on whose behalf a request of a namespace is served. With several stores it has the store, unless it
// cannot be found: then FindStore says why.
func (s *Service) HolderOf(ctx context.Context, namespace string) capacity.Holder {
	holder := capacity.Holder{Namespace: namespace}
	if len(s.stores) > 1 {
		holder.Store, _ = s.StoreOf(ctx, namespace)
	}
	return holder
}

// notOpen is the error of a store that was not opened yet.
func (m *openStore) notOpen() error {
	reason := "the store " + m.Name + " could not be opened yet"
	if why := m.failure.Load(); why != nil {
		reason += ": " + *why
	}
	return &store.UnavailableError{Reason: reason}
}

// openFailure returns the reason of a failure to open a store. It is shown to clients, and a driver's errors may
// contain addresses.
func openFailure(err error) string {
	if e, ok := errors.AsType[*store.UnavailableError](err); ok {
		return e.Reason
	}
	return "the process's log says why"
}

// TopicStats counts the jobs of topics, for metrics.
func (s *Service) TopicStats(ctx context.Context, filter store.StatsFilter) ([]store.TopicStats, error) {
	d, err := s.FindStore(ctx, filter.Namespace)
	if err != nil {
		return nil, err
	}
	return d.TopicStats(ctx, filter)
}

// Totals counts the jobs of a namespace, for metrics.
func (s *Service) Totals(ctx context.Context, namespace string) (store.TopicStats, error) {
	d, err := s.FindStore(ctx, namespace)
	if err != nil {
		return store.TopicStats{}, err
	}
	return d.Totals(ctx, namespace)
}

// Readiness returns that of each store, the main one first.
func (s *Service) Readiness(ctx context.Context) []store.Readiness {
	return checkStores(ctx, s.stores, func(ctx context.Context, d *Dispatcher) error { return d.Ready(ctx) })
}

// OtherStores says for each store but the main one whether its counts can be read.
func (s *Service) OtherStores(ctx context.Context) []store.Readiness {
	return checkStores(ctx, s.stores[1:], func(ctx context.Context, d *Dispatcher) error {
		_, err := d.Totals(ctx, job.DefaultNamespace)
		return err
	})
}

// checkStores checks stores, all at once.
func checkStores(
	ctx context.Context, stores []*openStore, check func(context.Context, *Dispatcher) error,
) []store.Readiness {
	all := make([]store.Readiness, len(stores))
	var checks sync.WaitGroup
	for n, m := range stores {
		all[n] = store.Readiness{Store: m.Name}
		checks.Go(func() {
			if d := m.dispatcher.Load(); d != nil {
				all[n].Err = check(ctx, d)
			} else {
				all[n].Err = m.notOpen()
			}
		})
	}
	checks.Wait()
	return all
}

// Process returns the name of this process in attempts; empty if it does not deliver.
func (s *Service) Process() string { return s.stores[0].dispatcher.Load().Process() }

// State returns the sum of the pools' states.
func (s *Service) State() pool.State {
	var sum pool.State
	for _, m := range s.stores {
		if d := m.dispatcher.Load(); d != nil {
			state := d.State()
			sum.Workers += state.Workers
			sum.InFlight += state.InFlight
		}
	}
	return sum
}

// LeaseClients returns the number of clients that wait for jobs of pulled topics, on all stores.
func (s *Service) LeaseClients() (n int) {
	for _, m := range s.stores {
		if d := m.dispatcher.Load(); d != nil {
			n += d.LeaseClients()
		}
	}
	return n
}

// LiveTail returns the sums of the Dispatchers' numbers.
func (s *Service) LiveTail() (listeners int, skipped uint64) {
	for _, m := range s.stores {
		if d := m.dispatcher.Load(); d != nil {
			n, k := d.LiveTail()
			listeners, skipped = listeners+n, skipped+k
		}
	}
	return listeners, skipped
}

// Waiting returns the sum of the Dispatchers' numbers.
func (s *Service) Waiting() (sum int) {
	for _, m := range s.stores {
		if d := m.dispatcher.Load(); d != nil {
			sum += d.Waiting()
		}
	}
	return sum
}
