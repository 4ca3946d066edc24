package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/dispatcher/metrics"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// engine is an open store with its default policy.
type engine struct {
	store.Store

	name       string
	oneProcess bool // only this process uses it
	defaults   policy.Topic
	log        *slog.Logger
}

// openEngine opens a store. It is safe for concurrent use.
func (a *App) openEngine(ctx context.Context, n namedStore) (engine, error) {
	e := engine{name: n.name, oneProcess: n.file != "", log: a.options.Logger}
	if len(a.stores) > 1 {
		e.log = e.log.With("store", n.name)
	}
	var err error
	if e.Store, e.defaults, err = n.open(ctx, a.options, e.log); err != nil {
		return engine{}, err
	}
	a.watchCertificates(n, e)
	a.opening.Lock()
	defer a.opening.Unlock()
	a.down.add("close the store", e.Close)
	return e, nil
}

// newService makes a dispatcher for the main store, which is open, and for each of the others. They share the workers
// of the process. A store beside main that is unavailable is opened later, so that it does not keep the process from
// serving the others.
func (a *App) newService(
	ctx context.Context, main engine, opts dispatcher.Options, observer *metrics.Metrics,
) (*dispatcher.Service, error) {
	share := pool.DefaultWorkers / len(a.stores)
	opts.Workers, opts.MaxBytes = pool.DefaultWorkers-share*(len(a.stores)-1), pool.DefaultMaxBytes/len(a.stores)
	opts.Owner = store.NewLeaseOwner()
	for _, n := range a.stores[1:] {
		opts.OtherStores = append(opts.OtherStores, n.name)
	}
	first, err := newDispatcher(main, opts, observer)
	if err != nil {
		return nil, err
	}
	opts.Registry, opts.Workers = first.Registry, share
	others, errs := make([]dispatcher.OtherStore, len(a.stores)-1), make([]error, len(a.stores)-1)
	var opening sync.WaitGroup
	for i, n := range a.stores[1:] {
		open := func(ctx context.Context) (*dispatcher.Dispatcher, error) {
			e, err := a.openEngine(ctx, n)
			if err != nil {
				return nil, err
			}
			return newDispatcher(e, opts, observer)
		}
		others[i] = dispatcher.OtherStore{Name: n.name, Open: open}
		opening.Go(func() {
			others[i].Dispatcher, errs[i] = open(ctx)
			if errors.Is(errs[i], store.ErrUnavailable) {
				a.options.Logger.Warn("a store is unavailable, opening it later", "store", n.name, "err", errs[i])
				errs[i] = nil
			}
		})
	}
	opening.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return dispatcher.NewService(first, others, a.options.Logger), nil
}

// newDispatcher makes the dispatcher of a store.
func newDispatcher(e engine, opts dispatcher.Options, observer *metrics.Metrics) (*dispatcher.Dispatcher, error) {
	opts.Store, opts.Defaults, opts.Logger = observer.Store(e.name, e.Store), e.defaults, e.log
	opts.OneProcess = e.oneProcess
	d, err := dispatcher.New(opts)
	if err != nil {
		return nil, fmt.Errorf("make the dispatcher: %w", err)
	}
	return d, nil
}
