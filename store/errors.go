package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
)

// The errors that a caller can act on.
var (
	// ErrNotFound: the job does not exist, or retention has removed it.
	ErrNotFound = errors.New("no such job")
	// ErrVersion: the required version (or revision) is not the current one.
	ErrVersion = errors.New("the version is not the current one")
	// ErrContended: a change was retried and met a concurrent change each time.
	ErrContended = errors.New("too many concurrent updates, retry")
	// ErrUnreadable: the value of a document cannot be decoded.
	ErrUnreadable = errors.New("document not readable")
	// ErrExpired: the job would expire before it is due.
	ErrExpired = errors.New("the job's expiry comes before it is due")
	// ErrLeaseLost: the job is no longer leased under this token. The result of the attempt is not recorded.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrCancelRequested: the lease was extended, and the job is to be cancelled: it ends as cancelled unless it is
	// delivered.
	ErrCancelRequested = errors.New("the job is to be cancelled")
	// ErrNotLeader: another process holds the shard's carrier lock.
	ErrNotLeader = errors.New("another process carries this shard")
	// ErrCursor: the position was not returned by List.
	ErrCursor = errors.New("the cursor was not returned by a list")
	// ErrUnavailable: the store cannot be reached, or accepts no writes, at present.
	ErrUnavailable = errors.New("the store is unavailable")
)

// StateError is the error of a change that the job's state does not allow.
type StateError struct {
	State job.State
}

func (e *StateError) Error() string { return fmt.Sprintf("the job is %s", e.State) }

// RevisionError is the error of a change that requires another revision of the settings than the stored one.
type RevisionError struct {
	Revision int64 // the stored one; 0: none are stored
}

func (e *RevisionError) Error() string { return fmt.Sprintf("the revision is %d", e.Revision) }

// UnavailableError is ErrUnavailable with its cause.
type UnavailableError struct {
	// Reason is one line for operators: "redis answers OOM: …".
	Reason string
	// RetryAfter is when clients should retry; zero: after 1 s.
	RetryAfter time.Duration
	Err        error
}

func (e *UnavailableError) Error() string {
	if e.Err == nil {
		return e.Reason
	}
	return e.Reason + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Is makes the error match ErrUnavailable.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// NotConfiguredError is ErrUnavailable for a namespace on a store that the process does not have.
type NotConfiguredError struct {
	Namespace string
	Store     string
}

func (e *NotConfiguredError) Error() string {
	return fmt.Sprintf("the namespace %s is on the store %s, which this process does not have: start it with --store "+
		"%s=URL",
		e.Namespace, e.Store, e.Store)
}

// Is makes the error match ErrUnavailable.
func (e *NotConfiguredError) Is(target error) bool { return target == ErrUnavailable }
