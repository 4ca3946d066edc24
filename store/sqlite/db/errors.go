package db

import (
	"context"
	"errors"
	"fmt"

	lib "modernc.org/sqlite/lib"

	"github.com/ringback/ringback/store"
)

// ErrClosed is the error of calls on a closed database.
var ErrClosed = &store.UnavailableError{Reason: "the store is closed"}

// An Error is a failure of the database: of the disk, of the file, or because of another process's lock. It ends the
// transaction. Every other error of a call is the call's own.
type Error struct{ err error }

// NewError returns err as a failure of the database.
func NewError(err error) *Error { return &Error{err} }

func (e *Error) Error() string { return e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

// IsError reports whether err is an Error.
func IsError(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

// Unavailable returns an Error as a store.UnavailableError with a reason for people, and other errors as they are.
func Unavailable(err error) error {
	fault, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	return &store.UnavailableError{Reason: reason(fault.err), Err: fault.err}
}

// reason describes an error in one line.
func reason(err error) string {
	switch primaryCode(err) {
	case lib.SQLITE_FULL:
		return "the disk under the database is full"
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return "another process has the database locked"
	case lib.SQLITE_READONLY, lib.SQLITE_PERM:
		return "the database takes no writes"
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return "the database file is damaged, or not a database: restore a backup with ringback restore, or save " +
			"what can be read with sqlite3's .recover"
	case lib.SQLITE_CANTOPEN:
		return "the database file cannot be opened"
	case lib.SQLITE_IOERR:
		return "the disk under the database fails"
	case lib.SQLITE_INTERRUPT:
		return "reading the database took too long"
	default:
		return "the database cannot be used"
	}
}

// A sqliteError is an error of the driver.
type sqliteError interface {
	error
	Code() int
}

// primaryCode returns SQLite's result code of an error, without its extension; SQLITE_OK if the error is not SQLite's.
func primaryCode(err error) int {
	if fault, ok := errors.AsType[sqliteError](err); ok {
		return fault.Code() & 0xff
	}
	return lib.SQLITE_OK
}

// damageError is damage that SQLite has not reported itself.
type damageError struct{}

func (damageError) Error() string { return "an index names rows that are missing" }
func (damageError) Code() int     { return lib.SQLITE_CORRUPT }

// ErrDamaged is the Error of a caller who has found the file damaged.
var ErrDamaged error = &Error{damageError{}}

// IsDamage reports whether an error shows that a part of the file is not as SQLite has written it.
func IsDamage(err error) bool {
	code := primaryCode(err)
	return code == lib.SQLITE_CORRUPT || code == lib.SQLITE_NOTADB
}

// ContextError returns the error of a context that has ended, with its cause if that says more, or nil.
func ContextError(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}

// affectsAll reports whether every other transaction would fail as well.
func affectsAll(err error) bool {
	switch primaryCode(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY:
		return true
	default:
		return IsDamage(err)
	}
}
