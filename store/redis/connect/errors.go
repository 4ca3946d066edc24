package connect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/store"
)

// refusals are errors of a server that is temporarily unavailable or misconfigured, and their explanations.
var refusals = []struct{ code, meaning string }{
	{"OOM", "its memory is full"},
	{"READONLY", "it is a replica"},
	{"LOADING", "it is loading its data"},
	{"MISCONF", "it cannot save its data"},
	{"CLUSTERDOWN", "the cluster is down"},
	{"TRYAGAIN", "the cluster is moving the data"},
	{"UNBLOCKED", "it changed its role"},
	{"MASTERDOWN", "its primary is away"},
	{"NOREPLICAS", "too few replicas follow it"},
	{"BUSY", "it is busy with a script"},
	{"MOVED", "the data are on another node"},
	{"ASK", "the data are moving to another node"},
	{"NOAUTH", "it asks for a password"},
	{"WRONGPASS", "it refuses the password"},
	{"NOPERM", "it does not permit the call"},
}

// ErrTimeout is the cause of deadlines that WithTimeout sets: when one passes, Redis is unavailable and the caller's
// context has not ended.
var ErrTimeout = errors.New("redis: no answer in time")

// WithTimeout limits how long Redis may take for a part of a call.
func WithTimeout(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, ErrTimeout)
}

// MapError maps go-redis's errors to those of package store. ctx is the context that the command had: when it has
// ended, and not by WithTimeout, the error is the context's.
func MapError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrTwoServers) {
		return &store.UnavailableError{Reason: err.Error(), RetryAfter: time.Second}
	}
	var answer redis.Error
	if !errors.As(err, &answer) || isClientSide(err) {
		late := isTimeout(err)
		if ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrTimeout) &&
			(late || errors.Is(err, context.Canceled)) {
			return fmt.Errorf("redis: %w: %w", ctx.Err(), err)
		}
		reason := "redis cannot be reached"
		if late {
			reason = "redis did not answer in time"
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			err = errors.New(err.Error()) // the text alone: the caller's context has not ended
		}
		return &store.UnavailableError{Reason: reason, RetryAfter: time.Second, Err: err}
	}
	text := answer.Error()
	if strings.HasPrefix(text, "ERR max number of clients") {
		return &store.UnavailableError{Reason: "redis has too many clients", RetryAfter: time.Second, Err: err}
	}
	for _, r := range refusals {
		// Before Redis 7 an error inside a script is wrapped: "ERR Error running script …: -OOM command …".
		if strings.HasPrefix(text, r.code+" ") || text == r.code || strings.Contains(text, ": -"+r.code+" ") {
			reason := "redis answers " + r.code + " (" + r.meaning + ")"
			return &store.UnavailableError{Reason: reason, RetryAfter: time.Second, Err: err}
		}
	}
	return fmt.Errorf("redis: %w", err)
}

// isClientSide reports whether an error that implements redis.Error is go-redis's own, not a server's reply.
func isClientSide(err error) bool {
	return errors.Is(err, redis.ErrClosed) || errors.Is(err, redis.ErrPoolTimeout) ||
		errors.Is(err, redis.ErrPoolExhausted)
}

// isTimeout reports whether waiting for a reply, not for a connection, timed out.
func isTimeout(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	wait, ok := errors.AsType[net.Error](err)
	return ok && wait.Timeout()
}

// IsNil reports whether a key or field does not exist.
func IsNil(err error) bool { return errors.Is(err, redis.Nil) }

// IsNotPermitted reports whether a server refuses or does not know a command.
func IsNotPermitted(err error) bool {
	answer, ok := errors.AsType[redis.Error](err)
	if !ok || isClientSide(err) {
		return false
	}
	text := strings.ToLower(answer.Error())
	for _, refusal := range []string{
		"unknown command", "unknown subcommand", "noperm", "disabled", "not supported", "not allowed",
	} {
		if strings.Contains(text, refusal) {
			return true
		}
	}
	return false
}
