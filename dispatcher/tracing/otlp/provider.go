package otlp

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/ringback/ringback/internal/logs"
)

// logInterval is the shortest interval between two lines of the log about the same.
const logInterval = 10 * time.Second

// Provider makes spans and exports them. Shut it down.
type Provider struct {
	*sdktrace.TracerProvider

	spans  *queue
	client *client
}

// Start returns a Provider. It makes itself the handler of errors of OpenTelemetry in this process.
func (c *Config) Start(log *slog.Logger) *Provider {
	failures := &logs.Limited{Logger: log, Interval: logInterval}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		failures.Warn("exporting traces failed, these spans are dropped", "err", err)
	}))
	p := &Provider{client: newClient(c)}
	p.spans = &queue{max: int64(c.queue), log: logs.Limited{Logger: log, Interval: logInterval}}
	p.spans.SpanExporter = otlptrace.NewUnstarted(p.client)
	p.spans.next = sdktrace.NewBatchSpanProcessor(p.spans, sdktrace.WithMaxQueueSize(c.queue))
	p.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(processor{p.spans}),
		sdktrace.WithResource(c.resource))
	return p
}

// Shutdown sends the spans that wait, until ctx ends. It returns the number of spans that were dropped since Start.
func (p *Provider) Shutdown(ctx context.Context) (dropped int64, err error) {
	err = p.TracerProvider.Shutdown(ctx)
	defer p.client.close()
	dropped = p.spans.dropped.Load()
	if ctx.Err() != nil {
		dropped += p.spans.pending.Load()
		err = context.Cause(ctx)
	}
	return dropped, err
}

// queue counts the spans that wait for their export or are being exported, and drops those beyond its size, so that
// next never has to.
type queue struct {
	sdktrace.SpanExporter

	next    sdktrace.SpanProcessor
	max     int64
	pending atomic.Int64
	dropped atomic.Int64
	log     logs.Limited
}

// ExportSpans exports spans. Those that cannot be exported are dropped.
func (q *queue) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	n := int64(len(spans))
	defer q.pending.Add(-n)
	err := q.SpanExporter.ExportSpans(ctx, spans)
	if err != nil {
		q.dropped.Add(n)
	}
	return err // it is logged as it is
}

// processor passes ended spans to a queue.
type processor struct{ *queue }

// OnStart implements sdktrace.SpanProcessor.
func (processor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor. It does not block.
func (q processor) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if q.pending.Add(1) > q.max {
		q.pending.Add(-1)
		q.log.Warn("spans are exported too slowly, dropping some", "dropped", q.dropped.Add(1), "queue", q.max)
		return
	}
	q.next.OnEnd(s)
}

// ForceFlush implements sdktrace.SpanProcessor.
func (q processor) ForceFlush(ctx context.Context) error {
	return q.next.ForceFlush(ctx) // nothing to add
}

// Shutdown implements sdktrace.SpanProcessor.
func (q processor) Shutdown(ctx context.Context) error {
	return q.next.Shutdown(ctx) // nothing to add
}
