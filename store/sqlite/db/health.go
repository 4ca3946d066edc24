package db

import (
	"log/slog"
	"sync"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/ringback/ringback/store"
)

const (
	// logInterval is how often an error of one kind is logged at most.
	logInterval = time.Minute
	// readErrorTTL is how long a failed read keeps the database unhealthy.
	readErrorTTL = time.Minute
)

// health collects errors of the database for the log and for Health.
type health struct {
	log *slog.Logger

	mu     sync.Mutex
	logged map[string]int64 // reason → when it was last logged, monotonic
	// damaged is an error of a damaged file. It stays until the file is opened again.
	damaged error
	// readError is that of the last read that the disk has failed; it counts until readErrorUntil, monotonic.
	readError      error
	readErrorUntil int64
}

func newHealth(log *slog.Logger) *health { return &health{log: log, logged: make(map[string]int64)} }

// note logs an error of the database, unless one of its kind was logged within logInterval. reading is set for reads,
// since a later write does not show whether they work again. now is monotonic.
func (h *health) note(verb string, err error, reading bool, now int64) {
	why := reason(err)
	h.mu.Lock()
	if IsDamage(err) {
		h.damaged = err
	} else if reading && primaryCode(err) == lib.SQLITE_IOERR {
		h.readError, h.readErrorUntil = err, now+int64(readErrorTTL)
	}
	last, known := h.logged[why]
	again := !known || now-last >= int64(logInterval)
	if again {
		h.logged[why] = now
	}
	h.mu.Unlock()
	if !again {
		return
	}
	fields := []any{"reason", why, "during", verb, "err", err}
	switch primaryCode(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_INTERRUPT:
		h.log.Warn("the database was not available in time", fields...)
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		h.log.Error("the database file is damaged: stop, and restore it from a backup", fields...)
	default:
		h.log.Error("the database fails", fields...)
	}
}

// check returns a store.UnavailableError while damage or a failed read counts. now is monotonic.
func (h *health) check(now int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.damaged != nil:
		return &store.UnavailableError{Reason: reason(h.damaged), Err: h.damaged}
	case h.readError != nil && now < h.readErrorUntil:
		return &store.UnavailableError{Reason: reason(h.readError), Err: h.readError}
	default:
		return nil
	}
}

// Note records an error of the database that no caller sees: it is logged, and Health may report it. reading is set for
// reads.
func (d *DB) Note(verb string, err error, reading bool) { d.health.note(verb, err, reading, d.now()) }

// Health returns a store.UnavailableError if the file was found damaged since it was opened, or a read has failed
// within the last minute. It makes no access.
func (d *DB) Health() error { return d.health.check(d.now()) }

// unavailable is Unavailable for an error that it notes.
func (d *DB) unavailable(verb string, err error, reading bool) error {
	if IsError(err) {
		d.Note(verb, err, reading)
	}
	return Unavailable(err)
}
