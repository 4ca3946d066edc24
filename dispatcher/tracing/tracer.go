package tracing

import (
	"context"
	"maps"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/ringback/ringback/job"
)

// scope is the name of the instrumentation in spans.
const scope = "github.com/ringback/ringback"

// Provider makes Tracers of OpenTelemetry.
type Provider = trace.TracerProvider

// Tracer makes spans. It is safe for concurrent use. It implements the Tracers of packages api, dispatcher and pool.
type Tracer struct{ spans trace.Tracer }

// New returns a Tracer that makes spans with a provider.
func New(provider Provider) *Tracer { return &Tracer{provider.Tracer(scope)} }

// w3c reads and writes the headers.
var w3c propagation.TraceContext

// carrier are the headers of a job, for w3c.
type carrier map[string][]string

// Get returns the value of a header; empty if it is not set, or secret.
func (c carrier) Get(name string) string {
	for key, values := range c {
		if len(values) == 1 && job.SameHeader(key, name) {
			return values[0]
		}
	}
	return ""
}

// Set sets a header.
func (c carrier) Set(name, value string) {
	switch name {
	case "traceparent":
		name = job.HeaderTraceparent
	case "tracestate":
		name = job.HeaderTracestate
	}
	c[name] = []string{value}
}

// Keys returns the names of the headers. It is not used by w3c.
func (carrier) Keys() []string { return nil }

// Carry returns headers of a job with the trace of the context, unless they carry one, there is no room, or the context
// has none. It does not change the headers that it is given.
func (t *Tracer) Carry(ctx context.Context, header map[string][]string) map[string][]string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return header
	}
	own := make(carrier, 2)
	w3c.Inject(ctx, own)
	return job.KeepTrace(own, header)
}

// replaceTrace is Carry for headers that may carry another trace.
func replaceTrace(ctx context.Context, header map[string][]string) map[string][]string {
	own := make(carrier, len(header)+2)
	maps.Copy(own, header)
	maps.DeleteFunc(own, func(name string, _ []string) bool {
		return job.SameHeader(name, job.HeaderTraceparent) || job.SameHeader(name, job.HeaderTracestate)
	})
	w3c.Inject(ctx, own)
	if !job.HeadersFit(own) {
		return header
	}
	return own
}
