package sqlite

import (
	"log/slog"
	"sync"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/ringback/ringback/store"
)

// How often a fault of one kind is logged, and how long a failed read keeps the store from being ready.
const (
	logFaultEvery = time.Minute
	readFaultFor  = time.Minute
)

// health collects faults of the database for the log and for readiness. Callers only learn that they may try again.
type health struct {
	log *slog.Logger

	mu     sync.Mutex
	logged map[string]int64 // reason → when it was last logged, monotonic
	// damaged is the fault of a file that is damaged. It does not heal by itself.
	damaged error
	// unread is the last read that the disk has failed, and readAgain until when it counts, monotonic.
	unread    error
	readAgain int64
}

func newHealth(log *slog.Logger) *health { return &health{log: log, logged: make(map[string]int64)} }

// note logs a fault of the database, unless one of its kind was logged within the last minute. reading says that it met a
// read, which Ping, a write, does not repeat.
func (h *health) note(verb string, err error, reading bool, now instant) {
	said := reason(err)
	h.mu.Lock()
	if isDamage(err) {
		h.damaged = err
	} else if reading && primaryCode(err) == lib.SQLITE_IOERR {
		h.unread, h.readAgain = err, now.mono+int64(readFaultFor)
	}
	last, known := h.logged[said]
	again := !known || now.mono-last >= int64(logFaultEvery)
	if again {
		h.logged[said] = now.mono
	}
	h.mu.Unlock()
	if !again {
		return
	}
	fields := []any{"reason", said, "during", verb, "err", err}
	switch primaryCode(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_INTERRUPT:
		h.log.Warn("the database was not available in time", fields...)
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		h.log.Error("the database file is damaged: stop, and restore it from a backup", fields...)
	default:
		h.log.Error("the database fails", fields...)
	}
}

// check answers why the store is not fit for use although it may take writes.
func (h *health) check(now instant) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.damaged != nil:
		return &store.UnavailableError{Reason: reason(h.damaged), Err: h.damaged}
	case h.unread != nil && now.mono < h.readAgain:
		return &store.UnavailableError{Reason: reason(h.unread), Err: h.unread}
	default:
		return nil
	}
}

// unavailable turns a diskError into what callers see, and notes it; other errors pass.
func (s *Store) unavailable(verb string, err error, reading bool) error {
	if isDisk(err) {
		s.health.note(verb, err, reading, s.clock())
	}
	return unavailable(err)
}
