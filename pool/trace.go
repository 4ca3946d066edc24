package pool

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Tracer makes the spans of attempts. It must be safe for concurrent use, and fast.
type Tracer interface {
	// StartAttempt begins the span of an attempt, now or at a time. Its parent is the trace in the request's headers,
	// if they carry one. The context has the span.
	StartAttempt(ctx context.Context, request job.Request, by policy.Deliver, at time.Time) (context.Context, Span)
}

// Span is the span of an attempt.
type Span interface {
	// Carry returns headers with the span's trace in place of that which they carry, if there is room for it. It does
	// not change the headers that it is given.
	Carry(header map[string][]string) map[string][]string
	// TraceID returns the id of the span's trace.
	TraceID() string
	// End ends the span with what came of the attempt. A span that is not ended is left out.
	End(e AttemptEvent)
}

// startSpan begins the span of an attempt, and has its request carry it. Without a Tracer it does nothing.
func (a *attempt) startSpan(ctx context.Context, r *job.Request) (context.Context, Span) {
	tracer := a.shard.p.opts.Tracer
	if tracer == nil {
		return ctx, nil
	}
	ctx, span := tracer.StartAttempt(ctx, *r, a.schedJob.Deliver, time.Time{})
	r.Header = span.Carry(r.Header)
	return ctx, span
}
