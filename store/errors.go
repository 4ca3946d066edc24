package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
)

// The errors that a caller can act on.
var (
	// ErrNotFound: no such job, or it is gone by retention.
	ErrNotFound = errors.New("no such job")
	// ErrVersion: the version (or revision) asked for is not the current one.
	ErrVersion = errors.New("the version is not the current one")
	// ErrExpired: the job's expiry would come before it is due.
	ErrExpired = errors.New("the job's expiry comes before it is due")
	// ErrLeaseLost: the job is not held under this lease any more; the attempt's outcome is not recorded.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrNotLeader: another process holds the shard's carrier lock.
	ErrNotLeader = errors.New("another process carries this shard")
	// ErrUnavailable: the store cannot be reached, or takes no writes, for now.
	ErrUnavailable = errors.New("the store is unavailable")
)

// StateError says that a job's state does not allow what was asked.
type StateError struct {
	State job.State
}

func (e *StateError) Error() string { return fmt.Sprintf("the job is %s", e.State) }

// UnavailableError is ErrUnavailable with its cause.
type UnavailableError struct {
	// Reason is one line for a person: "redis answers OOM: …".
	Reason string
	// RetryAfter is a hint for clients; zero: 1 s.
	RetryAfter time.Duration
	Err        error
}

func (e *UnavailableError) Error() string {
	if e.Err == nil {
		return e.Reason
	}
	return e.Reason + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrUnavailable) hold.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }
