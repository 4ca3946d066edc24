package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ringback/ringback/api"
	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/dispatcher/metrics"
	"github.com/ringback/ringback/dispatcher/tracing"
	"github.com/ringback/ringback/internal/fileread"
)

// App is a composed Ringback service. Make one with New and call Run once.
type App struct {
	options  Options
	stores   []namedStore
	main     engine
	listener net.Listener
	service  *dispatcher.Service
	server   *http.Server
	closing  atomic.Bool // responses carry Connection: close
	down     teardownStack
	opening  sync.Mutex // guards down while stores are opened
	files    *fileread.Watcher
}

// New opens the stores and the API's port and wires the service. Nothing is delivered or answered before Run, which
// also closes what New opened. Errors are written for the operator: they name the setting or resource and the cause.
func New(ctx context.Context, options Options) (_ *App, err error) {
	a := &App{options: options.withDefaults()}
	if err := a.options.Validate(); err != nil {
		return nil, err
	}
	a.files = fileread.NewWatcher(a.options.Logger)
	defer func() {
		if err != nil {
			err = errors.Join(err, a.down.run())
		}
	}()

	// The port comes first: a taken one is the cheapest error, and the guard needs its address.
	a.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", a.options.Addr)
	if err != nil {
		return nil, fmt.Errorf("open the API, see --addr: %w", err)
	}
	a.down.add("close the API's port", func() error {
		if err := a.listener.Close(); !errors.Is(err, net.ErrClosed) { // the server closes it too
			return err
		}
		return nil
	})

	if a.stores, err = parseStores(a.options.Store); err != nil {
		return nil, err
	}
	main, err := a.openEngine(ctx, a.stores[0])
	if err != nil {
		return nil, err
	}
	if err := checkImports(ctx, a.stores[0], main); err != nil {
		return nil, err
	}
	a.main = main

	guard, err := a.guard()
	if err != nil {
		return nil, err
	}
	box, err := a.options.box()
	if err != nil {
		return nil, err
	}
	descriptors := planDescriptors(descriptorLimit(), len(a.stores), a.options.has(RoleWorker))
	observer := metrics.New(metrics.Options{
		Version: a.options.Version, MaxWaiting: descriptors.waiting, Logger: a.options.Logger,
		LogDropped: a.options.LogDropped,
	})
	opts := dispatcher.Options{
		Declared: a.options.DeclaredTopics, CheckURL: guard.CheckURL,
		Seal: box, Observer: observer, ObserveWork: observer.WorkTreated,
		ObserveTicks: observer.TicksPassed, ObserveEvent: observer.EventExpanded, Grace: a.options.Grace,
	}
	var tracer api.Tracer
	if a.options.TracerProvider != nil {
		spans := tracing.New(a.options.TracerProvider)
		opts.Tracer, tracer = spans, spans
	}
	if a.options.has(RoleWorker) {
		sender, err := a.sender(guard, descriptors.idle)
		if err != nil {
			return nil, err
		}
		a.down.add("close idle connections", func() error { sender.Close(); return nil })
		opts.Deliverer = sender
	} else {
		opts.RegisterOnly = true
	}
	if a.service, err = a.newService(ctx, main, opts, observer); err != nil {
		return nil, err
	}
	observer.Watch(a.service)
	watchTokens := a.watchTokens("token", a.options.TokenFile)
	handler := api.New(api.Options{
		Service: api.NewService(a.service), MaxBody: a.options.MaxBody, MaxWaiting: descriptors.waiting,
		Version: a.options.Version, Commit: commit(), GoVersion: runtime.Version(), Process: a.service.Process(),
		Access: api.AccessOptions{
			Tokens: a.options.RootTokens(), MetricsTokens: linesOf(a.options.MetricsToken), Loopback: a.loopback(),
			CheckHost: a.options.NoAuth && a.options.has(RoleAPI), Hosts: a.hosts(),
			WatchTokens: watchTokens, WatchMetricsTokens: a.watchTokens("metrics token", a.options.MetricsTokenFile),
		},
		Tracer: tracer, Metrics: observer.Handler(), Console: a.console(watchTokens),
		HealthOnly: !a.options.has(RoleAPI), Closing: a.closing.Load, Logger: a.options.Logger,
	})
	a.server = api.Server(handler, a.options.Logger)
	descriptors.log(a.options.Logger, a.options.has(RoleWorker))
	limits.BoundConnections(a.server, descriptors.api, a.options.Logger)
	return a, nil
}

// commit returns the revision of the source, if the build has recorded it.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// hosts returns the Host names accepted when no token is required.
func (a *App) hosts() []string {
	names := slices.Clone(a.options.AllowedHosts)
	if host, err := splitAddr(a.options.Addr); err == nil && host != "" {
		names = append(names, host)
	}
	return names
}

// loopback reports whether the API listens on a loopback address.
func (a *App) loopback() bool {
	own, err := netip.ParseAddrPort(a.Addr())
	return err == nil && own.Addr().Unmap().IsLoopback()
}

// Addr returns the host:port at which the API listens.
func (a *App) Addr() string { return a.listener.Addr().String() }
