package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringback/ringback/api/request"
)

// settleTime is the end of the grace, which is for writing down what the attempts in flight came to.
const settleTime = 5 * time.Second

// errEarly: a part ended although nobody had asked it to.
var errEarly = errors.New("it ended by itself")

// Run delivers and serves until ctx ends, then stops within the grace, and says what went wrong: nil after an orderly
// stop. It takes everything apart at its end and may be called once.
//
//	ctx ends ─┬─ dispatcher: unready; claims and carries no more; attempts in flight end, the rest is released; settled ─┬─ teardown
//	          └─ server: serves on for the drain; then takes no connection; requests under way end ──────────────────────┘
func (a *App) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.down.run()) }()
	log := a.options.Logger

	// running ends with ctx, or when a part ends by itself. It is the context of claiming; work goes on inside the
	// dispatcher until it has drained.
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	var parts sync.WaitGroup
	var delivered error
	parts.Go(func() {
		delivered = a.dispatcher.Run(running)
		end(fmt.Errorf("deliver: %w", cmp.Or(delivered, errEarly)))
	})
	served := make(chan struct{})
	parts.Go(func() {
		defer close(served)
		end(fmt.Errorf("serve the API: %w", a.server.Serve(request.LimitHeaders(a.listener))))
	})
	log.Info("listening", "addr", a.Addr(), "store", a.store.String(), "roles", a.options.Roles, "version", a.options.Version)

	<-running.Done()
	a.closing.Store(true)
	began := time.Now()
	log.Info("stopping", "cause", context.Cause(running).Error(), "drain", a.options.Drain, "grace", a.options.Grace)
	if ctx.Err() != nil && a.options.has(RoleAPI) { // who stops because a part failed does not keep clients
		a.drain(served)
	}
	a.endServing(context.WithoutCancel(ctx), began)
	parts.Wait()
	log.Info("stopped", "after", time.Since(began).Round(time.Millisecond))
	if ctx.Err() == nil {
		return context.Cause(running) // the part that ended first
	}
	return delivered
}

// drain lets the API take requests for as long as load balancers need to see that it is not ready, unless it ends.
func (a *App) drain(served <-chan struct{}) {
	if a.options.Drain == 0 {
		return
	}
	timer := time.NewTimer(a.options.Drain)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-served:
	}
}

// endServing takes no more requests and lets those under way end for as long as attempts in flight may (after a long
// drain for half of what is left of the grace), then cuts them off.
func (a *App) endServing(ctx context.Context, began time.Time) {
	gone := time.Since(began)
	ctx, cancel := context.WithTimeout(ctx, max(a.options.working()-gone, (a.options.Grace-gone)/2))
	defer cancel()
	if err := a.server.Shutdown(ctx); err != nil {
		a.options.Logger.Warn("requests were cut off", "err", err)
		_ = a.server.Close() // the listener is closed already
	}
}
