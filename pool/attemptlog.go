package pool

import (
	"context"
	"log/slog"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// maxAttemptLines bounds the logged attempts per second; of the rest only the number is logged.
const maxAttemptLines = 100

// logAttempt logs the result of a claimed job.
func (p *Pool) logAttempt(ctx context.Context, claimedJob *store.ClaimedJob, result attemptResult) {
	v, r := result.verdict, result.record
	if !p.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	suppressed, ok := p.attemptLog.Allow()
	if !ok {
		return
	}
	attrs := []slog.Attr{
		slog.String("job", claimedJob.ID), slog.String("topic", claimedJob.Topic), slog.String("lane", claimedJob.Lane),
		slog.Int("attempt", r.N), slog.String("verdict", v.Kind.String()),
	}
	if claimedJob.Namespace != job.DefaultNamespace {
		attrs = append(attrs, slog.String("namespace", claimedJob.Namespace))
	}
	if r.Status != 0 {
		attrs = append(attrs, slog.Int("status", r.Status))
	}
	if r.Kind == job.KindAttempt {
		attrs = append(attrs, slog.Float64("duration_ms", float64(r.Duration/policy.DurationUnit)/10),
			slog.String("remote_addr", r.RemoteAddr))
	}
	if v.Kind == policy.Again {
		attrs = append(attrs, slog.Int64("wait_ms", v.Wait.Milliseconds()))
	}
	if v.Reason != "" {
		attrs = append(attrs, slog.String("reason", string(v.Reason)))
	}
	if r.Error != "" {
		attrs = append(attrs, slog.String("error_class", string(r.ErrorClass)), slog.String("err", r.Error))
	}
	if result.span != nil {
		attrs = append(attrs, slog.String("trace_id", result.span.TraceID()))
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	p.log.LogAttrs(ctx, slog.LevelInfo, "attempt", attrs...)
}
