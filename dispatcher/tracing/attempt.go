package tracing

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
)

var _ pool.Tracer = (*Tracer)(nil)

// span is the span of an attempt.
type span struct{ trace.Span }

// StartAttempt implements pool.Tracer.
func (t *Tracer) StartAttempt(
	ctx context.Context, r job.Request, by policy.Deliver, at time.Time,
) (context.Context, pool.Span) {
	kind, does := trace.SpanKindConsumer, "process"
	if by.Pushes() {
		by, kind, does = policy.DeliverPush, trace.SpanKindClient, "send"
	}
	begin := append(make([]trace.SpanStartOption, 0, 3), trace.WithSpanKind(kind))
	if !at.IsZero() {
		begin = append(begin, trace.WithTimestamp(at))
	}
	parent := w3c.Extract(ctx, carrier(r.Header))
	if parent == ctx { // not the span of the call of Run
		begin = append(begin, trace.WithNewRoot())
	}
	ctx, s := t.spans.Start(parent, "attempt", begin...)
	if s.IsRecording() {
		s.SetAttributes(operation("attempt", does, jobAttributes(r.Ref.ID, r.Queue)...)...)
		s.SetAttributes(attribute.String("ringback.deliver", string(by)), attribute.Int("ringback.attempt", r.Attempt))
		if by == policy.DeliverPush {
			s.SetAttributes(requestAttributes(&r)...)
		}
	}
	return ctx, &span{s}
}

// requestAttributes returns the attributes of an HTTP request. The path and the query may contain secrets, and are left
// out.
func requestAttributes(r *job.Request) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String("http.request.method", r.Method)}
	if r.Attempt > 1 {
		attrs = append(attrs, attribute.Int("http.request.resend_count", r.Attempt-1))
	}
	target, err := url.Parse(r.URL)
	if err != nil || target.Host == "" {
		return attrs
	}
	port, _ := strconv.Atoi(job.PortOf(target))
	return append(attrs,
		attribute.String("url.scheme", target.Scheme),
		attribute.String("server.address", target.Hostname()),
		attribute.Int("server.port", port),
	)
}

// Carry implements pool.Span.
func (s *span) Carry(header map[string][]string) map[string][]string {
	return replaceTrace(trace.ContextWithSpan(context.Background(), s.Span), header)
}

// TraceID implements pool.Span.
func (s *span) TraceID() string { return s.SpanContext().TraceID().String() }

// End implements pool.Span.
func (s *span) End(e pool.AttemptEvent) {
	var end []trace.SpanEndOption
	if s.IsRecording() {
		s.SetAttributes(
			attribute.String("ringback.verdict", e.Verdict.Kind.String()),
			attribute.Float64("ringback.lateness", max(0, e.Late).Seconds()),
		)
		if e.Verdict.Reason != "" {
			s.SetAttributes(attribute.String("ringback.reason", string(e.Verdict.Reason)))
		}
		if e.Verdict.Kind == policy.Again {
			s.SetAttributes(attribute.Float64("ringback.wait", e.Verdict.Wait.Seconds()))
		}
		s.setResult(e)
		if r := e.Result; r != nil && !r.StartedAt.IsZero() {
			end = append(end, trace.WithTimestamp(r.StartedAt.Add(r.Duration)))
		}
	}
	s.Span.End(end...)
}

// setResult sets what came of a request or a call. Failed are attempts that cost a retry or end the job.
func (s *span) setResult(e pool.AttemptEvent) {
	r := e.Result
	if r == nil {
		return
	}
	if r.Status != 0 {
		s.SetAttributes(attribute.Int("http.response.status_code", r.Status))
	}
	if host, port, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		s.SetAttributes(attribute.String("network.peer.address", host))
		if n, err := strconv.Atoi(port); err == nil {
			s.SetAttributes(attribute.Int("network.peer.port", n))
		}
	}
	if e.Verdict.Kind != policy.Again && e.Verdict.Kind != policy.Dead {
		return
	}
	kind := string(r.Class)
	if r.Class == policy.ClassNone {
		kind = strconv.Itoa(r.Status)
	}
	s.SetAttributes(attribute.String("error.type", kind))
	s.SetStatus(codes.Error, e.Record.Error)
}
