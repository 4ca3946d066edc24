// This part of the package works on leased jobs: it leases as many as functions are free, extends their leases while
// functions run, and reports what became of them in the requests that lease the next. The requests are made by a
// Server.

package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Causes of the end of a function's context.
var (
	// ErrLeaseLost: the lease has ended, or was settled before.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrCancelRequested: the job was cancelled while it was in work.
	ErrCancelRequested = errors.New("the job was cancelled")
)

var (
	// errUnavailable: the store could not take reports.
	errUnavailable = errors.New("the store cannot record what became of some jobs")
	// errExited: the function called runtime.Goexit.
	errExited = errors.New("the function ended its goroutine")
)

// MaxReports bounds the reports of a request.
const MaxReports = 512

// maxSettling bounds the requests in flight that settle jobs. One that leases jobs may come on top.
const maxSettling = 2

// Job is a leased job.
type Job[J any] struct {
	ID, Lease string
	// For is how long the lease lasts from now.
	For   time.Duration
	Value J
}

// Report is what became of a job: it is done if Err is nil.
type Report[J any] struct {
	Job Job[J]
	Err error
	// Released: the function was cut off by the end of Run, so the job has not failed.
	Released bool
}

// WorkAnswer is the answer to reports.
type WorkAnswer[J any] struct {
	Leased []Job[J]
	// Unavailable are the ids of the jobs whose reports must be repeated.
	Unavailable map[string]bool
}

// Extension is what became of a request to extend a lease. The zero value: it is not known.
type Extension struct{ Extended, Lost, CancelRequested bool }

// server makes the requests.
type server[J any] interface {
	// Exchange reports what became of jobs, and leases up to most jobs; zero: none.
	Exchange(ctx context.Context, reports []Report[J], most int) (WorkAnswer[J], error)
	// Extend extends a lease by Options.Lease from now.
	Extend(ctx context.Context, lease string) (Extension, error)
	// IsInvalid reports whether a request was refused for what it says, so that one of its reports must be invalid.
	IsInvalid(err error) bool
	// RetryAfter reports whether a failed exchange may succeed later, and how long to wait at least; zero: no matter.
	RetryAfter(err error) (after time.Duration, again bool)
}

// ConsumeOptions are the options of Run. None may be zero.
type ConsumeOptions struct {
	// Concurrency is the number of functions that run at a time, up to MaxReports.
	Concurrency int
	// Lease is how long a lease is extended.
	Lease time.Duration
	// Grace is how long functions may go on when the context of Run has ended.
	Grace time.Duration
	// Timeout bounds the last reports, after Grace.
	Timeout time.Duration
	// Retrying is called before the wait after a failure.
	Retrying func(err error, wait time.Duration)
}

// Consume leases jobs and calls work for each until ctx ends or the server refuses. Then functions have Grace, and Run
// reports what they return. It does not wait for functions longer than Grace and Timeout.
func Consume[J any](ctx context.Context, s server[J], o ConsumeOptions, work func(context.Context, J) error) error {
	working, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	running, ended := context.WithCancel(context.WithoutCancel(ctx))
	defer ended()
	w := &consumer[J]{
		server: s, opts: o, work: work, running: running, free: o.Concurrency,
		reports: make(chan Report[J], o.Concurrency), exchanges: make(chan exchange[J], maxSettling+1),
	}
	leasing, stopLeasing := context.WithCancel(ctx)
	err := w.lease(leasing, working)
	stopLeasing() // a request that waits for jobs would lease some that nobody is to begin
	defer time.AfterFunc(o.Grace, func() { stop(cmp.Or(err, context.Cause(ctx))) }).Stop()
	return errors.Join(err, w.end(working))
}

// consumer is the state of Run. Only its goroutine uses it.
type consumer[J any] struct {
	server server[J]
	opts   ConsumeOptions
	work   func(context.Context, J) error
	// running is the context of extensions: it ends with Run, so that a function that ignores its context does not keep
	// its job.
	running context.Context //nolint:containedctx // a consumer lives as long as a call of Run

	free      int              // functions that may be called
	inFlight  int              // exchanges
	polling   bool             // one of them leases jobs
	pending   []Report[J]      // to be sent
	pause     <-chan time.Time // nil: an exchange may be made
	backoff   Backoff
	later     later[J]
	reports   chan Report[J]
	exchanges chan exchange[J]
}

// later are reports that the store could not take. Only these wait: the others may be of another shard.
type later[J any] struct {
	reports []Report[J]
	due     <-chan time.Time // nil: there are none
	backoff Backoff
	sending bool // the next exchange repeats them
}

// exchange is a request and its answer.
type exchange[J any] struct {
	reports []Report[J]
	polls   bool // it leases jobs
	repeats bool // it repeats reports that the store could not take
	last    bool // it is not repeated
	answer  WorkAnswer[J]
	err     error
}

// lease leases jobs and settles them until ctx ends or a request is refused. working is the context of functions.
func (w *consumer[J]) lease(ctx, working context.Context) error {
	for {
		switch {
		case w.pause != nil:
		case w.free > 0 && !w.polling:
			w.send(ctx, exchange[J]{polls: true})
		case len(w.pending) > 0 && w.inFlight < maxSettling:
			w.send(ctx, exchange[J]{})
		}
		select {
		case r := <-w.reports:
			w.collect(r)
		case x := <-w.exchanges:
			if err := w.receive(working, x); err != nil && ctx.Err() == nil && !w.waitAfter(err) {
				return err
			}
		case <-w.pause:
			w.pause = nil
		case <-w.later.due:
			w.repeat()
		case <-ctx.Done():
			return nil
		}
	}
}

// waitAfter begins a wait after a failed exchange. It returns false if the server has refused it.
func (w *consumer[J]) waitAfter(err error) bool {
	after, again := w.server.RetryAfter(err)
	if again {
		wait := w.backoff.Next(after)
		w.opts.Retrying(err, wait)
		w.pause = time.After(wait)
	}
	return again
}

// end waits for the functions, and settles their jobs. Reports that are refused are dropped.
func (w *consumer[J]) end(working context.Context) error {
	var failed, unsent error // of reports that are dropped, and of those that are still repeated
	limited, cancel := context.WithTimeout(context.WithoutCancel(working), w.opts.Grace+w.opts.Timeout)
	defer cancel()
	w.pause = nil
	w.repeat()
	for w.later.due != nil || w.inFlight > 0 || w.free < w.opts.Concurrency || len(w.pending) > 0 {
		if len(w.pending) > 0 && w.inFlight == 0 && w.pause == nil {
			w.send(limited, exchange[J]{last: true})
		}
		select {
		case r := <-w.reports:
			w.collect(r)
		case x := <-w.exchanges:
			err := w.receive(working, x)
			if x.last {
				unsent = nil
			}
			if err != nil && x.last {
				err = fmt.Errorf("report what became of jobs: %w", err)
				if w.waitAfter(err) {
					unsent = err
				} else {
					failed, w.pending, w.later = err, nil, later[J]{}
				}
			}
		case <-w.pause:
			w.pause = nil
		case <-w.later.due:
			w.repeat()
		case <-limited.Done():
			if running := w.opts.Concurrency - w.free; running > 0 {
				return errors.Join(failed, unsent, fmt.Errorf("functions that have not returned: %d", running))
			}
			return cmp.Or(failed, unsent, fmt.Errorf("report what became of jobs: %w", context.Cause(limited)))
		}
	}
	return failed
}

// collect takes a report, and those that are there beside it.
func (w *consumer[J]) collect(r Report[J]) {
	for {
		w.free++
		if !errors.Is(r.Err, ErrLeaseLost) {
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
func (w *consumer[J]) send(ctx context.Context, x exchange[J]) {
	x.reports = w.pending[:min(len(w.pending), MaxReports)]
	w.pending = w.pending[len(x.reports):]
	x.repeats, w.later.sending = w.later.sending, false
	most := 0
	if x.polls {
		w.polling, most = true, w.free
	}
	w.inFlight++
	go func() {
		x.answer, x.err = w.server.Exchange(ctx, x.reports, most)
		if len(x.reports) > 0 && x.err != nil && w.server.IsInvalid(x.err) {
			x.answer, x.err = w.settleApart(ctx, x.reports, x.err)
		}
		w.exchanges <- x
	}()
}

// settleApart settles reports that were refused together: both halves alone. A job whose own report is refused has
// failed.
func (w *consumer[J]) settleApart(ctx context.Context, reports []Report[J], refused error) (WorkAnswer[J], error) {
	if len(reports) == 1 {
		failed := Report[J]{Job: reports[0].Job, Err: fmt.Errorf("the report of its end was refused: %w", refused)}
		answer, err := w.server.Exchange(ctx, []Report[J]{failed}, 0)
		if err != nil && w.server.IsInvalid(err) { // it comes again when its lease has ended
			return WorkAnswer[J]{}, nil
		}
		return answer, err
	}
	all := WorkAnswer[J]{Unavailable: make(map[string]bool)}
	for _, half := range [][]Report[J]{reports[:len(reports)/2], reports[len(reports)/2:]} {
		answer, err := w.server.Exchange(ctx, half, 0)
		if err != nil && w.server.IsInvalid(err) {
			answer, err = w.settleApart(ctx, half, err)
		}
		if err != nil {
			return WorkAnswer[J]{}, err
		}
		maps.Copy(all.Unavailable, answer.Unavailable)
	}
	return all, nil
}

// receive takes the answer of an exchange: jobs are begun, and what was not recorded is sent again.
func (w *consumer[J]) receive(working context.Context, x exchange[J]) error {
	w.inFlight--
	if x.polls {
		w.polling = false
	}
	if x.err != nil {
		w.pending = append(w.pending, x.reports...)
		return x.err
	}
	w.backoff = Backoff{}
	w.putOff(x)
	for _, j := range x.answer.Leased {
		w.free--
		go w.do(working, j)
	}
	return nil
}

// putOff keeps the reports of an exchange that the store could not take. They wait longer with each repeat.
func (w *consumer[J]) putOff(x exchange[J]) {
	before := len(w.later.reports)
	for _, r := range x.reports {
		if x.answer.Unavailable[r.Job.ID] {
			w.later.reports = append(w.later.reports, r)
		}
	}
	switch {
	case len(w.later.reports) == before && x.repeats:
		w.later.backoff = Backoff{}
	case len(w.later.reports) > before && w.later.due == nil:
		wait := w.later.backoff.Next(0)
		w.opts.Retrying(errUnavailable, wait)
		w.later.due = time.After(wait)
	}
}

// repeat lets the next exchange repeat the reports that were put off.
func (w *consumer[J]) repeat() {
	if len(w.later.reports) == 0 {
		return
	}
	w.pending = append(w.later.reports, w.pending...)
	w.later.reports, w.later.due, w.later.sending = nil, nil, true
}

// do calls the function for a job while its lease is extended.
func (w *consumer[J]) do(working context.Context, j Job[J]) {
	ctx, cancel := context.WithCancelCause(working)
	defer cancel(nil)
	done := make(chan struct{})
	extended := make(chan struct{})
	go func() {
		defer close(extended)
		w.extend(j, done, cancel)
	}()
	err := errExited
	defer func() {
		close(done)
		<-extended
		cause := context.Cause(ctx)
		if errors.Is(cause, ErrLeaseLost) {
			err = cause
		}
		cutOff := working.Err() != nil && errors.Is(cause, context.Cause(working))
		w.reports <- Report[J]{j, err, cutOff && (errors.Is(err, ctx.Err()) || errors.Is(err, cause))}
	}()
	err = w.work(ctx, j.Value)
}

// extend extends a lease until done is closed. It ends ctx of the function when the lease is lost, or the job
// cancelled.
func (w *consumer[J]) extend(j Job[J], done <-chan struct{}, end context.CancelCauseFunc) {
	until := time.Now().Add(j.For)
	for {
		timer := time.NewTimer(time.Until(until) / 2)
		select {
		case <-done:
			timer.Stop()
			return
		case <-w.running.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if time.Until(until) < FirstWait {
			end(ErrLeaseLost)
			return
		}
		began := time.Now()
		ctx, cancel := context.WithDeadline(w.running, until)
		stopped := make(chan struct{})
		go func() { // the function has ended: what was asked for is of no use
			defer close(stopped)
			select {
			case <-done:
				cancel()
			case <-ctx.Done():
			}
		}()
		result, err := w.server.Extend(ctx, j.Lease)
		cancel()
		<-stopped
		if err != nil {
			continue // until the lease has ended
		}
		switch {
		case result.Lost:
			end(ErrLeaseLost)
			return
		case result.CancelRequested:
			end(ErrCancelRequested)
		}
		if result.Extended {
			until = began.Add(w.opts.Lease)
		}
	}
}
