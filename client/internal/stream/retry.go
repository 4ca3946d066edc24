// This part of the package waits between the tries of a request, and knows which faults of connections may pass.

package stream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Waits between tries.
const (
	FirstWait   = 100 * time.Millisecond
	longestWait = 10 * time.Second
	maxAfter    = 5 * time.Minute
)

// ErrNoAnswer: the server has not answered in time.
var ErrNoAnswer = errors.New("no answer")

// incompleteError is an answer that has not come whole.
type incompleteError struct{ err error }

func (e *incompleteError) Error() string { return e.err.Error() }
func (e *incompleteError) Unwrap() error { return e.err }

// Incomplete returns an error with the text of err: an answer has not come whole.
func Incomplete(err error) error { return &incompleteError{err} }

// IsFault reports whether an error is a fault of a connection after which the same request may succeed.
func IsFault(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, bufio.ErrTooLong) {
		return false
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	// there is no TLS
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return false
	}
	_, isNetwork := errors.AsType[*url.Error](err)
	_, isIncomplete := errors.AsType[*incompleteError](err)
	return isNetwork || isIncomplete || errors.Is(err, ErrNoAnswer)
}

// IsUnsent reports whether no connection was made for the request.
func IsUnsent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// Backoff is a wait that grows from try to try. The zero value begins with FirstWait.
type Backoff struct {
	// Retries counts the waits.
	Retries int
	wait    time.Duration
}

// Next returns the next wait, with jitter. It is not shorter than after, if that is positive, and at most five minutes.
func (b *Backoff) Next(after time.Duration) time.Duration {
	b.Retries++
	b.wait = min(max(2*b.wait, FirstWait), longestWait)
	wait := b.wait/2 + rand.N(b.wait/2)
	if after > 0 {
		after = min(after, maxAfter)
		wait = max(wait, after+rand.N(after/4+FirstWait))
	}
	return wait
}

// Wait waits before a repeat after a failure. It returns an error that wraps the cause if ctx would end before.
func (b *Backoff) Wait(ctx context.Context, after time.Duration, cause error) error {
	wait := b.Next(after)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), cause)
	}
	if end, has := ctx.Deadline(); has && time.Until(end) < wait {
		return fmt.Errorf("%w, before the next try in %s: %w", context.DeadlineExceeded,
			wait.Round(time.Millisecond), cause)
	}
	if err := Sleep(ctx, wait); err != nil {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return nil
}

// Sleep waits, and returns the cause if ctx ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx) // it is the whole of it
	case <-timer.C:
		return nil
	}
}
