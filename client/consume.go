package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/client/internal/stream"
	"github.com/ringback/ringback/client/internal/wire"
)

// WorkFunc does the work of a job. If it returns nil the job is delivered, with the job's Response. After an
// error or a panic the job is due again as its ladder says; RetryAfter and NoRetry say otherwise.
//
// ctx ends when the work is of no use any more: context.Cause is ErrLeaseLost if another client may have the job,
// ErrCancelRequested if the job was cancelled, and that of Work's context after WorkOptions.Grace.
type WorkFunc func(ctx context.Context, j *LeasedJob) error

// WorkOptions are the options of Work.
type WorkOptions struct {
	// Concurrency is the number of jobs in work at a time, up to 512; zero: 1.
	Concurrency int
	// Lease is how long a job is leased at a time, from 2 s; zero: 60 s. It is extended while the function runs, so it
	// bounds how long a job waits after a crash.
	Lease time.Duration
	Lanes []string // names, or beginnings of names with a * at the end; empty: all
	// Grace is how long functions may go on when Work's context has ended; zero: 10 s.
	Grace time.Duration
	// Logger gets a warning for each failure after which Work goes on, and the stack of each panic; nil: slog.Default.
	Logger *slog.Logger
}

// ErrCancelRequested: the job was cancelled while it was in work. It ends as cancelled, unless the function returns
// nil.
var ErrCancelRequested = stream.ErrCancelRequested

type retryError struct {
	after time.Duration
	err   error
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

type noRetryError struct{ err error }

func (e *noRetryError) Error() string { return e.err.Error() }
func (e *noRetryError) Unwrap() error { return e.err }

// RetryAfter returns the error of a WorkFunc whose job is due again after a wait instead of the ladder's. A wait below
// 0 is 0, one of more than 30 days is 30 days.
func RetryAfter(after time.Duration, err error) error { return &retryError{after, err} }

// NoRetry returns the error of a WorkFunc whose job is dead, whatever retries it has left.
func NoRetry(err error) error { return &noRetryError{err} }

// Bounds of Work.
const (
	defaultLease = time.Minute
	defaultGrace = 10 * time.Second
	pollWait     = 30 * time.Second
	maxLeases    = 100 // jobs of a request
	maxWorkRetry = 30 * 24 * time.Hour
)

// Work leases the jobs of a pulled topic and calls f for each, until ctx ends: then functions have a grace, what they
// return is reported, and Work returns nil. What a function returns is reported in the request that leases the next
// jobs. A job may come again: after a crash, and when its lease was lost.
//
// Work returns an error if the server refuses to lease, such as for the token or the topic. Functions have their grace
// then, too. After other errors it goes on, with growing waits, whatever Options.MaxRetries is, and logs them to
// WorkOptions.Logger. Functions that have not returned by the end of the grace and Options.Timeout after it are an
// error: Work does not wait longer, and their leases end.
//
// If the end of the grace cuts a function off, so that it returns ctx's error or its cause, its job is given back: it
// is due at once, and costs no retry.
func (c *Client) Work(ctx context.Context, topic string, o WorkOptions, f WorkFunc) error {
	o.Lease = max(cmp.Or(o.Lease, defaultLease), 2*time.Second)
	log := cmp.Or(o.Logger, slog.Default()).With("topic", topic)
	options := stream.ConsumeOptions{
		Concurrency: min(max(o.Concurrency, 1), stream.MaxReports), Lease: o.Lease,
		Grace: cmp.Or(o.Grace, defaultGrace), Timeout: c.opts.Timeout, Retrying: func(err error, wait time.Duration) {
			log.Warn("work on jobs failed, retrying", "err", err, "retry_in", wait)
		},
	}
	once := *c // each failure is logged, so the repeats are Work's
	once.opts.MaxRetries = -1
	return stream.Consume(ctx, leaseServer{c, &once, topic, o}, options, func(ctx context.Context, j *LeasedJob) error {
		return callWork(ctx, f, j, log)
	})
}

// callWork calls f for a job. A panic is an error, also one in a method of f's error or of the job's response.
func callWork(ctx context.Context, f WorkFunc, j *LeasedJob, log *slog.Logger) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			log.Error("function panicked, its attempt has failed", "job", j.ID, "err", err,
				"stack", string(debug.Stack()))
		}
	}()
	err = f(ctx, j)
	if err == nil {
		err = encodeResponse(j)
	}
	return plain(ctx, err)
}

// plainError has the text of a program's error instead of its methods, which may panic.
type plainError struct {
	text  string
	ended error // the error or cause of the function's context that it wraps; nil: neither
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.ended }

// plain returns an error of a function without the program's methods. It keeps what RetryAfter and NoRetry say.
func plain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	e := &plainError{text: shorten(err.Error())}
	for _, ended := range []error{ctx.Err(), context.Cause(ctx)} {
		if ended != nil && errors.Is(err, ended) {
			e.ended = ended
		}
	}
	if _, ok := errors.AsType[*noRetryError](err); ok {
		return &noRetryError{e}
	}
	if retry, ok := errors.AsType[*retryError](err); ok {
		return &retryError{retry.after, e}
	}
	return e
}

// leaseServer makes the requests of Work.
type leaseServer struct {
	client *Client
	once   *Client // makes requests without repeats
	topic  string
	opts   WorkOptions
}

// Exchange settles jobs, and leases others.
func (s leaseServer) Exchange(
	ctx context.Context, reports []stream.Report[*LeasedJob], most int,
) (stream.WorkAnswer[*LeasedJob], error) {
	settlement := settlementOf(reports)
	if most > 0 {
		settlement.Next = &NextLeases{
			Topic: s.topic, Max: min(most, maxLeases), Wait: pollWait,
			Lease: s.opts.Lease, Lanes: s.opts.Lanes,
		}
	}
	var date time.Time
	settled, err := s.once.settle(ctx, settlement, &date)
	if err != nil {
		return stream.WorkAnswer[*LeasedJob]{}, err
	}
	answer := stream.WorkAnswer[*LeasedJob]{Unavailable: make(map[string]bool)}
	for _, r := range slices.Concat(settled.Done, settled.Retry, settled.Dead, settled.Release) {
		if r.Result == "unavailable" {
			answer.Unavailable[r.ID] = true
		}
	}
	for i := range settled.Items {
		j := &settled.Items[i]
		left := s.opts.Lease
		if !date.IsZero() { // the job may have a timeout, which its lease lasts for
			left = min(left, max(j.LeaseUntil.Sub(date)-time.Second, time.Second)) // Date is in whole seconds
		}
		answer.Leased = append(answer.Leased, stream.Job[*LeasedJob]{ID: j.ID, Lease: j.Lease, For: left, Value: j})
	}
	return answer, nil
}

// Extend extends a lease.
func (s leaseServer) Extend(ctx context.Context, lease string) (stream.Extension, error) {
	settled, err := s.client.Settle(ctx, Settlement{Extend: []LeaseExtend{{lease, s.opts.Lease}}})
	if err != nil || len(settled.Extend) == 0 {
		return stream.Extension{}, err
	}
	r := settled.Extend[0]
	return stream.Extension{Extended: r.Result == "ok", Lost: r.Result == "lost", CancelRequested: r.CancelRequested},
		nil
}

// IsInvalid reports whether a settlement was refused for what it says.
func (leaseServer) IsInvalid(err error) bool { return errors.Is(err, ErrInvalid) }

// RetryAfter is about the errors of Exchange. A server that fails (500) may succeed later; one that
// refuses the token, the topic or the request will not.
func (leaseServer) RetryAfter(err error) (after time.Duration, again bool) {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.RetryAfter(), isTemporary(err) || p.Status >= http.StatusInternalServerError
	}
	return 0, isTemporary(err) || errors.Is(err, errUnreadable)
}

// settlementOf returns the settlement of reports.
func settlementOf(reports []stream.Report[*LeasedJob]) Settlement {
	var s Settlement
	for _, r := range reports {
		if r.Err == nil {
			s.Done = append(s.Done, LeaseDone{r.Job.Value.Lease, r.Job.Value.Response})
			continue
		}
		if _, ok := errors.AsType[*noRetryError](r.Err); ok {
			s.Dead = append(s.Dead, LeaseDead{r.Job.Value.Lease, cmp.Or(shorten(r.Err.Error()), "no reason")})
			continue
		}
		again := LeaseRetry{Lease: r.Job.Value.Lease, Error: shorten(r.Err.Error())}
		if after, ok := errors.AsType[*retryError](r.Err); ok {
			again.After = new(min(max(after.after, 0), maxWorkRetry))
		} else if r.Released {
			s.Release = append(s.Release, LeaseRelease{again.Lease})
			continue
		}
		s.Retry = append(s.Retry, again)
	}
	return s
}

// maxText bounds what is sent of errors and responses, of which servers store less.
const maxText = 4 << 10

func shorten(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxText)], "") }

// encodeResponse makes the response of a job its JSON, within bounds.
func encodeResponse(j *LeasedJob) error {
	if j.Response == nil {
		return nil
	}
	raw, err := wire.Encode(&j.Response)
	if err != nil {
		return fmt.Errorf("the job's response: %w", err)
	}
	j.Response = json.RawMessage(raw)
	if len(raw) > maxText {
		j.Response = shorten(string(raw))
	}
	return nil
}
