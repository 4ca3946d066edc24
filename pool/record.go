package pool

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// AttemptEvent is the end of a claimed job's attempt, whether a request was made or not.
type AttemptEvent struct {
	Namespace string
	Topic     string
	Verdict   policy.Verdict
	// Result is the result of the request; nil: no request.
	Result *policy.Result
	// Late is the time from the due time to the start of the attempt, by the store's clock.
	Late time.Duration
	// Job is the claimed job. It is valid until AttemptEnded returns.
	Job *store.ClaimedJob
	// Terms are the resolved terms of a job that ended; of others they may be zero.
	Terms policy.Terms
	// Record is the entry in the job's history; its Kind is empty if there is none.
	Record job.Attempt
	// URL is that of the request: of the job, its lane or its topic; empty: none.
	URL string
}

// Observer is notified of events. It must be safe for concurrent use, and fast.
type Observer interface {
	// AttemptEnded is called once for each claimed job, even if its settlement fails.
	AttemptEnded(e AttemptEvent)
}

// maxAttemptLines bounds the logged attempts per second, and maxWarnings those that ended jobs as dead; of the rest
// only the number is logged.
const (
	maxAttemptLines = 100
	maxWarnings     = 10
)

// Recorder records the results of attempts, whoever made them: in the job's history, as its callback, and for the
// observer, the span and the log. It is safe for concurrent use.
type Recorder struct {
	process   string
	callbacks Callbacks
	observer  Observer
	lines     logs.Limited
	deaths    logs.Limited
}

// Callbacks returns the callback jobs for a job's end.
type Callbacks func(ended AttemptEvent) []store.NewJob

// NewRecorder returns a Recorder. process is the name of the process in attempts. callbacks and observer may be nil.
func NewRecorder(process string, callbacks Callbacks, observer Observer, log *slog.Logger) *Recorder {
	return &Recorder{
		process, callbacks, observer,
		logs.Limited{Logger: log, Burst: maxAttemptLines},
		logs.Limited{Logger: log, Burst: maxWarnings},
	}
}

// Attempt returns the entry of a request with the number n in its job's history.
func (r *Recorder) Attempt(n int, result *policy.Result, verdict policy.Verdict) job.Attempt {
	record := job.Attempt{
		N: n, Kind: job.KindAttempt, StartedAt: job.Millis(result.StartedAt),
		Duration: policy.RoundUp(result.Duration), Phases: result.Phases.RoundUp(), RemoteAddr: result.RemoteAddr,
		Process: r.process, Status: result.Status, Verdict: verdict.Kind.String(), Reason: verdict.Reason,
		Error: cmp.Or(result.Error, verdict.Note), ErrorClass: result.Class, Header: result.Header, Body: result.Body,
	}
	if len(record.Body) > job.MaxAttemptBody {
		record.Body = slices.Clone(record.Body[:job.MaxAttemptBody]) // does not keep the rest in memory
	}
	if verdict.Kind == policy.Released {
		record.Kind = job.KindReleased
	}
	return record
}

// Settlement returns the settlement of a claimed job, with the callback about its end, which carries the trace of the
// span; nil: there is none.
func (r *Recorder) Settlement(e *AttemptEvent, span Span) store.Settlement {
	item := store.Settlement{
		Ref: e.Job.Ref(), Queue: e.Job.Queue, Lease: e.Job.Lease, Verdict: e.Verdict, Attempt: e.Record,
		Late: e.Late,
	}
	if e.Verdict.Kind == policy.Delivered || e.Verdict.Kind == policy.Dead {
		item.Outbox = r.Outbox(e, span)
	}
	return item
}

// Outbox returns the callback of a job that was delivered or is dead.
func (r *Recorder) Outbox(e *AttemptEvent, span Span) []store.NewJob {
	if r.callbacks == nil {
		return nil
	}
	outbox := r.callbacks(*e)
	if span != nil {
		for i := range outbox {
			outbox[i].Header = span.Carry(outbox[i].Header)
		}
	}
	return outbox
}

// Ended notifies the observer, ends the span (nil: there is none), and logs.
func (r *Recorder) Ended(ctx context.Context, e AttemptEvent, span Span) {
	if r.observer != nil {
		r.observer.AttemptEnded(e)
	}
	if span != nil {
		span.End(e)
	}
	r.log(ctx, &e, span)
}

func (r *Recorder) log(ctx context.Context, e *AttemptEvent, span Span) {
	lines, level, message := &r.lines, slog.LevelInfo, "attempt"
	if e.Verdict.Kind == policy.Dead {
		lines, level, message = &r.deaths, slog.LevelWarn, "job is dead"
	}
	if !lines.Logger.Enabled(ctx, level) {
		return
	}
	suppressed, ok := lines.Allow()
	if !ok {
		return
	}
	v, record := e.Verdict, &e.Record
	attrs := []slog.Attr{
		slog.String("job", e.Job.ID), slog.String("topic", e.Topic), slog.String("lane", e.Job.Lane),
		slog.Int("attempt", record.N), slog.String("verdict", v.Kind.String()),
	}
	if e.Namespace != job.DefaultNamespace {
		attrs = append(attrs, slog.String("namespace", e.Namespace))
	}
	if record.Status != 0 {
		attrs = append(attrs, slog.Int("status", record.Status))
	}
	if record.Kind == job.KindAttempt {
		attrs = append(attrs, slog.Float64("duration_ms", float64(record.Duration/policy.DurationUnit)/10),
			slog.String("remote_addr", record.RemoteAddr))
	}
	if v.Kind == policy.Again {
		attrs = append(attrs, slog.Int64("wait_ms", v.Wait.Milliseconds()))
	}
	if v.Reason != "" {
		attrs = append(attrs, slog.String("reason", string(v.Reason)))
	}
	if record.Error != "" {
		attrs = append(attrs, slog.String("error_class", string(record.ErrorClass)), slog.String("err", record.Error))
	}
	if span != nil {
		attrs = append(attrs, slog.String("trace_id", span.TraceID()))
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	lines.Logger.LogAttrs(ctx, level, message, attrs...) //nolint:sloglint // one of two constants
}

// LogSuppressed logs how many attempts were left out of the log since the last one that is in it.
func (r *Recorder) LogSuppressed() {
	if suppressed := r.lines.Suppressed() + r.deaths.Suppressed(); suppressed > 0 {
		r.lines.Logger.Info("attempts left out of the log before the end", "suppressed", suppressed)
	}
}
