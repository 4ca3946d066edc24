// This part of the package delivers jobs by calling Go functions of the program that embeds Ringback.
//
// A call is an attempt: its error climbs the ladder, unless it is a RetryError or a DeadError. A panic is an error. The
// context of a call ends after the attempt's timeout, which its lease outlives, and when the process stops. A function
// that does not return soon after that is left to itself: its attempt has failed, or is released when the process
// stops, and the job may be handled again while the function still runs. So many such calls are tolerated, and no more.

package dispatcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

const (
	// patience is how long a function may take to return after its context has ended: less than the margin of its
	// lease.
	patience = time.Second
	// maxStuck is the number of calls that have not returned by then with which a Handler is full.
	maxStuck = 1000
	// maxError bounds the text of an error that is stored, in bytes.
	maxError = 1 << 10
)

// errTimeout is the cause with which the context of a call ends.
var errTimeout = errors.New("the attempt's timeout is over")

// handler makes attempts by calling a function. It implements pool.Handler.
type handler struct {
	handle HandlerFunc
	log    logs.Limited
	stuck  atomic.Int64 // calls that were left to themselves
}

// newHandler returns a Handler that calls a function.
func newHandler(handle HandlerFunc, log *slog.Logger) *handler {
	return &handler{handle: handle, log: logs.Limited{Logger: log}}
}

// IsFull reports whether so many calls have not returned after their timeouts that no others begin.
func (h *handler) IsFull() bool { return h.stuck.Load() >= maxStuck }

// Deliver makes an attempt.
func (h *handler) Deliver(ctx context.Context, r job.Request) policy.Result {
	result := policy.Result{StartedAt: time.Now()}
	if h.IsFull() {
		result.Class = policy.ClassLocalResources
		result.Error = fmt.Sprintf("%d calls of the handler have not returned after their timeouts", h.stuck.Load())
		return result
	}
	limited, cancel := context.WithTimeoutCause(ctx, r.Timeout, errTimeout)
	defer cancel()
	o, returned := h.call(limited, &r)
	result.Duration = time.Since(result.StartedAt)
	switch {
	case returned && !o.failed:
		result.Accepted = true
	case ctx.Err() != nil && !o.decided():
		result.Class, result.Error = policy.ClassShutdown, "the process stopped"
	case !returned:
		result.Class, result.Error = policy.ClassConsumer, fmt.Sprintf("the handler has not returned within its "+
			"timeout of %v", r.Timeout)
	default:
		result.Class, result.Error, result.RetryAfter, result.NonRetryable = policy.ClassConsumer, o.text, o.retryAfter,
			o.dead
	}
	return result
}

// outcome is what a function returned. It has the text of an error instead of the error, whose methods are the
// program's code and may panic. The zero value is that of nil.
type outcome struct {
	failed     bool
	text       string // of the error, on one line
	retryAfter time.Duration
	dead       bool
}

// decided reports whether a failure says what becomes of the job. Others may be due to the end of the context.
func (o outcome) decided() bool { return o.retryAfter > 0 || o.dead }

// call calls the function in a goroutine, and waits until it returns or is left to itself.
func (h *handler) call(ctx context.Context, r *job.Request) (o outcome, returned bool) {
	ended := make(chan outcome, 1)
	go func() {
		o := outcome{failed: true, text: "the handler ended its goroutine"}
		defer func() { ended <- o }()
		o = h.run(ctx, r)
	}()
	select {
	case o = <-ended:
		return o, true
	case <-ctx.Done():
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case o = <-ended:
		return o, true
	case <-late.C:
	}
	h.stuck.Add(1)
	h.log.Warn("handler has not returned after its context ended, its job goes on without it",
		"job", r.Ref.ID, "topic", r.Queue.Topic, "cause", context.Cause(ctx), "stuck", h.stuck.Load())
	go func() {
		<-ended
		h.stuck.Add(-1)
	}()
	return outcome{}, false
}

// run calls the function. A panic is a failure, also one of its error's methods.
func (h *handler) run(ctx context.Context, r *job.Request) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = outcome{failed: true, text: policy.OneLine(fmt.Sprintf("panic: %v", p), maxError)}
			h.log.Error("handler panicked, its attempt has failed",
				"job", r.Ref.ID, "topic", r.Queue.Topic, "panic", o.text, "stack", string(debug.Stack()))
		}
	}()
	return outcomeOf(h.handle(ctx, jobOf(r)))
}

// jobOf returns the job for a function. Its body is a copy: those of claimed jobs share an array, which a call that
// does not return would keep.
func jobOf(r *job.Request) *Job {
	return &Job{
		ID: r.Ref.ID, Namespace: r.Ref.Namespace, Topic: r.Queue.Topic, Lane: r.Queue.Lane, Attempt: r.Attempt,
		RetriesLeft: r.RetriesLeft,
		DueAt:       r.DueAt, Body: bytes.Clone(r.Body), ContentType: r.ContentType, Header: r.Header, Labels: r.Labels,
	}
}

// outcomeOf returns the outcome of a call that returned err.
func outcomeOf(err error) outcome {
	if err == nil {
		return outcome{}
	}
	o := outcome{failed: true, text: policy.OneLine(err.Error(), maxError)}
	if retry, ok := errors.AsType[*RetryError](err); ok && retry != nil {
		o.retryAfter = max(retry.After, time.Millisecond)
	}
	_, o.dead = errors.AsType[*DeadError](err)
	return o
}
