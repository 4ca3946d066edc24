package redis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
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

// fault turns go-redis's errors into those of the contract.
func fault(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("redis: %w", err)
	}
	var answer redis.Error
	if !errors.As(err, &answer) || isClientSide(err) {
		return &store.UnavailableError{Reason: "redis cannot be reached", RetryAfter: time.Second, Err: err}
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

// withoutURL cuts the URL out of a parse error: it may hold a password.
func withoutURL(err error) error {
	if parse, ok := errors.AsType[*url.Error](err); ok {
		return parse.Err
	}
	return err
}
