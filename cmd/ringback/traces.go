package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kong"

	"github.com/ringback/ringback/dispatcher/tracing/otlp"
	"github.com/ringback/ringback/internal/app"
)

const (
	// maxTraceFlush and minTraceFlush bound the time for which a stop waits until the last spans are exported: what is
	// left of the grace.
	maxTraceFlush = 5 * time.Second
	minTraceFlush = time.Second
)

// traces reads the variables of OpenTelemetry; nil: spans are not exported.
func traces() (*otlp.Config, error) {
	c, err := otlp.FromEnvironment(versionName())
	if err != nil {
		return nil, &usageError{err}
	}
	return c, nil
}

// describeTraces returns where spans are exported to.
func describeTraces(c *otlp.Config) string {
	if c == nil {
		return "off"
	}
	return "to " + c.Endpoint.Redacted() + " (" + c.From + ")"
}

// runApp runs the service of a command until ctx ends, and exports its spans if the environment says so.
func (p *process) runApp(
	ctx context.Context, line *kong.Context, options app.Options, started func(*app.App),
) error {
	exporter, err := traces()
	if err != nil {
		return err
	}
	if options.InForce, err = p.inForce(line, options, exporter); err != nil {
		return err
	}
	if exporter != nil {
		spans := exporter.Start(options.Logger)
		options.TracerProvider = spans
		options.Logger.Info("exporting traces", "endpoint", exporter.Endpoint.Redacted(), "from", exporter.From)
		var ended atomic.Int64 // when the stop began
		defer context.AfterFunc(ctx, func() { ended.Store(time.Now().UnixNano()) })()
		defer func() {
			left := maxTraceFlush
			if began := ended.Load(); began != 0 {
				left = min(left, options.Grace-time.Since(time.Unix(0, began)))
			}
			flushTraces(ctx, spans, max(left, minTraceFlush), options.Logger)
		}()
	}
	a, err := app.New(ctx, options)
	if err != nil {
		return err
	}
	started(a)
	return a.Run(ctx)
}

// flushTraces exports the last spans.
func flushTraces(ctx context.Context, spans *otlp.Provider, limit time.Duration, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if dropped, err := spans.Shutdown(ctx); dropped > 0 || err != nil {
		log.Warn("spans were not exported", "dropped", dropped, "err", err)
	}
}
