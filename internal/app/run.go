package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringback/ringback/api/limits"
)

// settleTime is the end of the grace, reserved for recording the results of attempts in flight.
const settleTime = 5 * time.Second

// errExited is the cause when a component returned without an error before it was stopped.
var errExited = errors.New("exited unexpectedly")

// Run delivers and serves until ctx ends or a component fails, then stops within the grace. It returns nil after an
// orderly stop. It closes everything that New opened and may be called once.
//
//	ctx ends ─┬─ dispatcher: unready; stops claiming and carrying; attempts in flight end ─┬─ teardown
//	          └─ server: serves during the drain; then ends the requests in flight ────────┘
//
// The dispatcher releases what it has not begun, and settles all. The server accepts no connection after the drain.
func (a *App) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.down.run()) }()
	log := a.options.Logger

	// running ends with ctx, or when a component exits. It is the context of claiming; attempts in flight outlive it
	// inside the dispatcher.
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	end := func(cause error) {
		a.closing.Store(true) // before, so that requests which wait until then close their connections
		cancel(cause)
	}
	defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })()
	defer cancel(nil)
	var parts sync.WaitGroup
	var delivered error
	parts.Go(func() {
		delivered = a.service.Run(running)
		end(fmt.Errorf("deliver: %w", cmp.Or(delivered, errExited)))
	})
	parts.Go(func() { a.files.Run(running) })
	if !a.main.oneProcess {
		parts.Go(func() {
			if err := watchImports(running, a.stores[0], a.main); err != nil {
				end(err)
			}
		})
	}
	served := make(chan struct{})
	parts.Go(func() {
		defer close(served)
		end(fmt.Errorf("serve the API: %w", a.server.Serve(limits.LimitHeaders(a.listener))))
	})
	log.Info("listening", "addr", a.Addr(), "store", listStores(a.stores), "roles", a.options.Roles, "version",
		a.options.Version, "process", a.service.Process())

	<-running.Done()
	began := time.Now()
	log.Info("stopping", "cause", context.Cause(running).Error(), "drain", a.options.Drain, "grace", a.options.Grace)
	if ctx.Err() != nil && a.options.has(RoleAPI) { // no drain after a failure
		a.drain(served)
	}
	a.endServing(context.WithoutCancel(ctx), began)
	parts.Wait()
	log.Info("stopped", "after", time.Since(began).Round(time.Millisecond))
	if ctx.Err() == nil {
		return context.Cause(running) // the component that ended first
	}
	return delivered
}

// drain waits for Options.Drain while the API still serves, or until the server ends.
func (a *App) drain(served <-chan struct{}) {
	if a.options.Drain == 0 {
		return
	}
	select {
	case <-time.After(a.options.Drain):
	case <-served:
	}
}

// endServing stops accepting requests and waits for those in flight as long as attempts in flight may take (after a
// long drain: half of the remaining grace), then closes their connections.
func (a *App) endServing(ctx context.Context, began time.Time) {
	gone := time.Since(began)
	ctx, cancel := context.WithTimeout(ctx, max(a.options.workTime()-gone, (a.options.Grace-gone)/2))
	defer cancel()
	if err := a.server.Shutdown(ctx); err != nil {
		a.options.Logger.Warn("requests in flight were cut off", "err", err)
		_ = a.server.Close() // the listener is closed already
	}
}
