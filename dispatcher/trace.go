package dispatcher

import (
	"context"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// Tracer makes the spans of registrations and attempts, as tracing.Tracer does. It must be safe for concurrent use, and
// fast.
type Tracer interface {
	pool.Tracer
	// Carry returns headers of a job with the trace of the context, unless they carry one, there is no room, or the
	// context has none. It does not change the headers that it is given.
	Carry(ctx context.Context, header map[string][]string) map[string][]string
	// Registered reports the results of a registration to the span of the context.
	Registered(ctx context.Context, results []store.RoutedResult)
	// Tick makes the span of a schedule's tick, and has its job carry it.
	Tick(ctx context.Context, n *job.New)
}

// poolTracer returns the Tracer of attempts; nil: none.
func (d *Dispatcher) poolTracer() pool.Tracer {
	if d.opts.Tracer == nil {
		return nil // not an interface with a nil Tracer
	}
	return d.opts.Tracer
}

// keepTrace returns new headers of a job with the trace that it carries, if attempts are traced.
func (d *Dispatcher) keepTrace(from, to map[string][]string) map[string][]string {
	if d.opts.Tracer == nil {
		return to
	}
	return job.KeepTrace(from, to)
}
