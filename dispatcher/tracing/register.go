package tracing

import (
	"context"
	"net/http"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// counts are the jobs that a request has registered.
type counts struct {
	created, existing, refused atomic.Int64
	first                      atomic.Pointer[job.Spec] // the first one that was not refused, without body and headers
}

type countsKey struct{}

// StartRequest begins the span of a request that registers jobs: one, however many jobs it registers. Its parent is the
// trace in the request's headers, if they carry one. end ends it with the status of the answer.
func (t *Tracer) StartRequest(r *http.Request) (_ *http.Request, end func(status int)) {
	ctx, s := t.spans.Start(w3c.Extract(r.Context(), propagation.HeaderCarrier(r.Header)), "register",
		trace.WithSpanKind(trace.SpanKindServer))
	if !s.IsRecording() {
		return r.WithContext(ctx), func(int) { s.End() }
	}
	registered := new(counts)
	s.SetAttributes(operation("register", "create",
		attribute.String("http.request.method", r.Method), attribute.String("http.route", r.Pattern))...)
	return r.WithContext(context.WithValue(ctx, countsKey{}, registered)), func(status int) {
		s.SetAttributes(
			attribute.Int("http.response.status_code", status),
			attribute.Int64("ringback.jobs.created", registered.created.Load()),
			attribute.Int64("ringback.jobs.existing", registered.existing.Load()),
			attribute.Int64("ringback.jobs.refused", registered.refused.Load()),
		)
		if spec := registered.first.Load(); spec != nil &&
			registered.created.Load()+registered.existing.Load()+registered.refused.Load() == 1 {
			s.SetAttributes(jobAttributes(spec.ID, spec.Queue)...)
		}
		if status >= http.StatusInternalServerError {
			s.SetStatus(codes.Error, "")
		}
		s.End()
	}
}

// Registered adds jobs that were registered to the span of the context, which names a job only if it is the only one.
func (t *Tracer) Registered(ctx context.Context, results []store.RoutedResult) {
	registered, ok := ctx.Value(countsKey{}).(*counts)
	if !ok {
		return
	}
	for i := range results {
		switch r := &results[i]; {
		case r.Err != nil:
			registered.refused.Add(1)
		case r.Outcome == store.Created:
			registered.created.Add(1)
		default:
			registered.existing.Add(1)
		}
	}
	if len(results) == 1 && results[0].Err == nil {
		j := &results[0].Job
		registered.first.CompareAndSwap(nil, &job.Spec{ID: j.ID, Queue: j.Queue})
	}
}

// operation returns the attributes of an operation, and more.
func operation(name, kind string, more ...attribute.KeyValue) []attribute.KeyValue {
	return append(more, attribute.String("messaging.system", "ringback"),
		attribute.String("messaging.operation.name", name), attribute.String("messaging.operation.type", kind))
}

// jobAttributes returns the attributes that name a job.
func jobAttributes(id string, q job.Queue) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.message.id", id),
		attribute.String("messaging.destination.name", q.Topic),
		attribute.String("ringback.namespace", q.Namespace),
		attribute.String("ringback.lane", q.Lane),
	}
}

// Tick has the job of a schedule's tick carry a new trace.
func (t *Tracer) Tick(ctx context.Context, n *job.New) {
	ctx, s := t.spans.Start(ctx, "tick", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindProducer))
	if s.IsRecording() {
		s.SetAttributes(operation("tick", "create", jobAttributes(n.ID, n.Queue)...)...)
	}
	n.Header = t.Carry(ctx, n.Header)
	s.End()
}
