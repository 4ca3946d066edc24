package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ringback/ringback/client/internal/wire"
)

// WorkFunc does the work of a job. If it returns nil the job is delivered, with the job's Response. After an error the job is due again as
// its ladder says; RetryAfter and NoRetry say otherwise. ctx ends when the work is of no use any more: context.Cause is ErrLost if
// another client may have the job, ErrCancelRequested if the job was cancelled, and that of Work's context after WorkOptions.Grace.
type WorkFunc func(ctx context.Context, j *LeasedJob) error

// WorkOptions are the options of Work.
type WorkOptions struct {
	// Concurrency is the number of jobs in work at a time, up to 512; zero: 1.
	Concurrency int
	// Lease is how long a job is leased at a time, from 2 s; zero: 60 s. It is extended while the function runs, so it bounds how long a job
	// waits after a crash.
	Lease time.Duration
	Lanes []string // names, or beginnings of names with a * at the end; empty: all
	// Grace is how long functions may go on when Work's context has ended; zero: 10 s.
	Grace time.Duration
}

// ErrCancelRequested: the job was cancelled while it was in work. It ends as cancelled, unless the function returns nil.
var ErrCancelRequested = errors.New("the job was cancelled")

type retryError struct {
	after time.Duration
	err   error
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

type noRetryError struct{ err error }

func (e *noRetryError) Error() string { return e.err.Error() }
func (e *noRetryError) Unwrap() error { return e.err }

// RetryAfter returns the error of a WorkFunc whose job is due again after a wait instead of the ladder's. A wait below 0 is 0, one of more
// than 30 days is 30 days.
func RetryAfter(after time.Duration, err error) error { return &retryError{after, err} }

// NoRetry returns the error of a WorkFunc whose job is dead, whatever retries it has left.
func NoRetry(err error) error { return &noRetryError{err} }

// Bounds of Work.
const (
	defaultLease   = time.Minute
	defaultGrace   = 10 * time.Second
	pollWait       = 30 * time.Second
	maxConcurrency = 512 // reports of a request
	maxLeases      = 100 // jobs of a request
	maxWorkRetry   = 30 * 24 * time.Hour
)

// Work leases the jobs of a pulled topic and calls f for each, until ctx ends: then functions have a grace, what they return is reported,
// and Work returns nil. It returns an error if the server refuses to lease. What a function returns is reported in the request that
// leases the next jobs. A job may come again: after a crash, and when its lease was lost.
func (c *Client) Work(ctx context.Context, topic string, o WorkOptions, f WorkFunc) error {
	o.Concurrency = min(max(o.Concurrency, 1), maxConcurrency)
	o.Lease = max(cmp.Or(o.Lease, defaultLease), 2*time.Second)
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	working, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	w := &consumer{
		client: c, topic: topic, opts: o, work: f, free: o.Concurrency,
		reports: make(chan report, o.Concurrency), exchanges: make(chan exchange, 2),
	}
	err := w.lease(ctx, working)
	defer time.AfterFunc(o.Grace, func() { stop(context.Cause(ctx)) }).Stop()
	if err != nil {
		stop(err)
	}
	return errors.Join(err, w.end(working))
}

// consumer is the state of Work. Only its goroutine uses it.
type consumer struct {
	client *Client
	topic  string
	opts   WorkOptions
	work   WorkFunc

	free      int      // functions that may be called
	settling  int      // exchanges in flight
	polling   bool     // one of them leases jobs
	pending   []report // to be sent
	reports   chan report
	exchanges chan exchange
}

// report is what became of a job.
type report struct {
	job *LeasedJob
	err error
}

// exchange is a request and its answer.
type exchange struct {
	reports []report
	polled  bool
	last    bool // it is not repeated
	settled *Settled
	date    time.Time
	err     error
}

// lease leases jobs and settles them until ctx ends or a request fails. working is the context of functions.
func (w *consumer) lease(ctx, working context.Context) error {
	for {
		switch {
		case w.free > 0 && !w.polling:
			w.send(ctx, exchange{polled: true})
		case len(w.pending) > 0 && w.settling < cap(w.exchanges):
			w.send(ctx, exchange{})
		}
		select {
		case r := <-w.reports:
			w.collect(r)
		case x := <-w.exchanges:
			if err := w.receive(working, x); err != nil && ctx.Err() == nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// end waits for the functions, and settles their jobs.
func (w *consumer) end(working context.Context) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(working), w.opts.Grace+w.client.opts.Timeout)
	defer cancel()
	for w.settling > 0 || w.free < w.opts.Concurrency || len(w.pending) > 0 {
		if len(w.pending) > 0 && w.settling == 0 {
			w.send(limited, exchange{last: true})
		}
		select {
		case r := <-w.reports:
			w.collect(r)
		case x := <-w.exchanges:
			if err := w.receive(working, x); err != nil && x.last {
				return fmt.Errorf("report what became of jobs: %w", err)
			}
		}
	}
	return nil
}

// collect takes a report, and those that are there beside it.
func (w *consumer) collect(r report) {
	for {
		w.free++
		if !errors.Is(r.err, ErrLost) {
			w.pending = append(w.pending, r)
		}
		select {
		case r = <-w.reports:
		default:
			return
		}
	}
}

// send begins an exchange that reports what is pending.
func (w *consumer) send(ctx context.Context, x exchange) {
	x.reports = w.pending[:min(len(w.pending), maxConcurrency)]
	w.pending = w.pending[len(x.reports):]
	s := settlementOf(x.reports)
	if x.polled {
		w.polling = true
		s.Next = &NextLeases{Topic: w.topic, Max: min(w.free, maxLeases), Wait: pollWait, Lease: w.opts.Lease, Lanes: w.opts.Lanes}
	}
	w.settling++
	go func() {
		x.settled, x.err = w.client.settle(ctx, s, &x.date)
		if len(x.reports) > 0 && errors.Is(x.err, ErrInvalid) {
			x.settled, x.err = w.settleApart(ctx, x.reports, x.err)
		}
		w.exchanges <- x
	}()
}

// settleApart settles reports that were refused together: both halves alone. A job whose own report is refused has failed.
func (w *consumer) settleApart(ctx context.Context, reports []report, refused error) (*Settled, error) {
	if len(reports) == 1 {
		failed := report{reports[0].job, fmt.Errorf("the report of its end was refused: %w", refused)}
		settled, err := w.client.Settle(ctx, settlementOf([]report{failed}))
		if errors.Is(err, ErrInvalid) { // it comes again when its lease has ended
			return new(Settled), nil
		}
		return settled, err
	}
	all := new(Settled)
	for _, half := range [][]report{reports[:len(reports)/2], reports[len(reports)/2:]} {
		settled, err := w.client.Settle(ctx, settlementOf(half))
		if errors.Is(err, ErrInvalid) {
			settled, err = w.settleApart(ctx, half, err)
		}
		if err != nil {
			return nil, err
		}
		all.Done, all.Retry, all.Dead = append(all.Done, settled.Done...), append(all.Retry, settled.Retry...), append(all.Dead, settled.Dead...)
	}
	return all, nil
}

// settlementOf returns the settlement of reports.
func settlementOf(reports []report) Settlement {
	var s Settlement
	for _, r := range reports {
		if r.err == nil {
			s.Done = append(s.Done, LeaseDone{r.job.Lease, r.job.Response})
			continue
		}
		if _, ok := errors.AsType[*noRetryError](r.err); ok {
			s.Dead = append(s.Dead, LeaseDead{r.job.Lease, cmp.Or(shorten(r.err.Error()), "no reason")})
			continue
		}
		retry := LeaseRetry{Lease: r.job.Lease, Error: shorten(r.err.Error())}
		if after, ok := errors.AsType[*retryError](r.err); ok {
			retry.After = new(min(max(after.after, 0), maxWorkRetry))
		}
		s.Retry = append(s.Retry, retry)
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

// receive takes the answer of an exchange: jobs are begun, and what was not recorded is sent again.
func (w *consumer) receive(working context.Context, x exchange) error {
	w.settling--
	if x.polled {
		w.polling = false
	}
	if x.err != nil {
		w.pending = append(w.pending, x.reports...)
		return x.err
	}
	again := make(map[string]bool)
	for _, results := range [][]LeaseResult{x.settled.Done, x.settled.Retry, x.settled.Dead} {
		for _, r := range results {
			again[r.ID] = r.Result == "unavailable"
		}
	}
	for _, r := range x.reports {
		if again[r.job.ID] {
			w.pending = append(w.pending, r)
		}
	}
	for i := range x.settled.Items {
		w.free--
		go w.do(working, &x.settled.Items[i], x.date)
	}
	return nil
}

// do calls the function for a job while its lease is extended.
func (w *consumer) do(working context.Context, j *LeasedJob, date time.Time) {
	ctx, cancel := context.WithCancelCause(working)
	defer cancel(nil)
	left := w.opts.Lease
	if !date.IsZero() { // the job may have a timeout, which its lease lasts for
		left = min(left, max(j.LeaseUntil.Sub(date)-time.Second, time.Second)) // Date is in whole seconds
	}
	done := make(chan struct{})
	extended := make(chan struct{})
	go func() {
		defer close(extended)
		w.extend(j.Lease, left, done, cancel)
	}()
	err := w.work(ctx, j)
	if err == nil {
		err = encodeResponse(j)
	}
	close(done)
	<-extended
	if lost := context.Cause(ctx); errors.Is(lost, ErrLost) {
		err = lost
	}
	w.reports <- report{j, err}
}

// extend extends a lease until done is closed. It ends ctx of the function when the lease is lost, or the job cancelled.
func (w *consumer) extend(lease string, left time.Duration, done <-chan struct{}, end context.CancelCauseFunc) {
	until := time.Now().Add(left)
	for {
		timer := time.NewTimer(time.Until(until) / 2)
		select {
		case <-done:
			timer.Stop()
			return
		case <-timer.C:
		}
		if time.Until(until) < firstWait {
			end(ErrLost)
			return
		}
		began := time.Now()
		ctx, cancel := context.WithDeadline(context.Background(), until)
		stopped := make(chan struct{})
		go func() { // the function has ended: what was asked for is of no use
			defer close(stopped)
			select {
			case <-done:
				cancel()
			case <-ctx.Done():
			}
		}()
		settled, err := w.client.Settle(ctx, Settlement{Extend: []LeaseExtend{{lease, w.opts.Lease}}})
		cancel()
		<-stopped
		if err != nil || len(settled.Extend) == 0 {
			continue // until the lease has ended
		}
		switch r := settled.Extend[0]; {
		case r.Result == "lost":
			end(ErrLost)
			return
		case r.CancelRequested:
			end(ErrCancelRequested)
		}
		if settled.Extend[0].Result == "ok" {
			until = began.Add(w.opts.Lease)
		}
	}
}
