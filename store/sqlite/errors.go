package sqlite

import (
	"context"
	"errors"
	"fmt"

	lib "modernc.org/sqlite/lib"

	"github.com/ringback/ringback/store"
)

// errClosed answers calls on a store that is closed.
var errClosed = &store.UnavailableError{Reason: "the store is closed"}

// A diskError is anything that the database answered. It ends the transaction: a caller's own mistakes are found before
// anything is written, so the cause is the disk, the file or another process's lock.
type diskError struct{ err error }

func (e *diskError) Error() string { return e.err.Error() }
func (e *diskError) Unwrap() error { return e.err }

// unavailable turns a diskError into what callers see; other errors pass.
func unavailable(err error) error {
	disk, ok := errors.AsType[*diskError](err)
	if !ok {
		return err
	}
	return &store.UnavailableError{Reason: reason(disk.err), Err: disk.err}
}

// reason is one line for a person.
func reason(err error) string {
	switch primaryCode(err) {
	case lib.SQLITE_FULL:
		return "the disk under the database is full"
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return "somebody else has the database locked"
	case lib.SQLITE_READONLY, lib.SQLITE_PERM:
		return "the database takes no writes"
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return "the database file is damaged, or is none"
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

// A sqliteError is what the driver answers: *engine.Error.
type sqliteError interface {
	error
	Code() int
}

// primaryCode is SQLite's result code for an error, without what extends it; SQLITE_OK for one that is not SQLite's.
func primaryCode(err error) int {
	if fault, ok := errors.AsType[sqliteError](err); ok {
		return fault.Code() & 0xff
	}
	return lib.SQLITE_OK
}

// isDamage reports whether an error shows that the file, or a part of it, is not what SQLite has written.
func isDamage(err error) bool {
	code := primaryCode(err)
	return code == lib.SQLITE_CORRUPT || code == lib.SQLITE_NOTADB
}

// ended says that a context ended before the answer was there.
func ended(ctx context.Context, verb string) error {
	return fmt.Errorf("%s: %w", verb, end(ctx))
}

// end is the error of a context that has ended, with its cause where that says more; nil while it goes on.
func end(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}

// affectsAll reports whether a fault would meet any other transaction as well.
func affectsAll(err error) bool {
	switch primaryCode(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY:
		return true
	default:
		return false
	}
}
