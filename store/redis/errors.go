package redis

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

// errStale: a queue's number means another queue now, because someone emptied the database.
var errStale = errors.New("redis: a queue's number is stale")

// refusals are the server's answers that say "not now", and what they mean to a person.
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

// errSlow is the cause of the deadlines that this package sets itself: one that passes is Redis's fault, not the
// caller's wish.
var errSlow = errors.New("redis: no answer in time")

// within bounds a part of a call by a deadline of this package's own.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, errSlow)
}

// fault turns go-redis's errors into those of the contract. ctx is the context that the command had: when it has ended,
// and not by a deadline of this package, the error is the context's.
func fault(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var answer redis.Error
	if !errors.As(err, &answer) || isClientSide(err) {
		late := isTimeout(err)
		if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSlow) && (late || errors.Is(err, context.Canceled)) {
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
	if strings.HasPrefix(text, "STALE") {
		return errStale
	}
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

// isClientSide tells go-redis's own errors, which bear the same interface, from a server's answer.
func isClientSide(err error) bool {
	return errors.Is(err, redis.ErrClosed) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}

// isTimeout tells a wait that was given up, but for that for a connection, from other faults.
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
