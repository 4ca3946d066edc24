package db

import (
	"log/slog"
	"sync"
	"sync/atomic"
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
	log  *slog.Logger
	path string
	// damaged is set once the file was found damaged. It stays until the file is opened again.
	damaged atomic.Pointer[store.UnavailableError]

	mu     sync.Mutex
	logged map[string]int64 // reason → when it was last logged, monotonic
	// readError is that of the last read that the disk has failed; it counts until readErrorUntil, monotonic.
	readError      error
	readErrorUntil int64
}

func newHealth(log *slog.Logger, path string) *health {
	return &health{log: log, path: path, logged: make(map[string]int64)}
}

// note logs an error of the database, unless one of its kind was logged within logInterval, or it is damage and not the
// first. reading is set for reads, since a later write does not show whether they work again. now is monotonic.
func (h *health) note(verb string, err error, reading bool, now int64) {
	why := reason(err)
	if IsDamage(err) {
		if h.damaged.CompareAndSwap(nil, &store.UnavailableError{Reason: why, Err: err}) {
			h.log.Error("the database is damaged, nothing is served from it until a restart", "database", h.path,
				"reason", why, "during", verb, "err", err)
		}
		return
	}
	h.mu.Lock()
	if reading && primaryCode(err) == lib.SQLITE_IOERR {
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
	default:
		h.log.Error("the database fails", fields...)
	}
}

// damage returns a store.UnavailableError if the file was found damaged.
func (h *health) damage() error {
	if err := h.damaged.Load(); err != nil {
		return err
	}
	return nil
}

// check returns a store.UnavailableError while a failed read counts. now is monotonic.
func (h *health) check(now int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readError != nil && now < h.readErrorUntil {
		return &store.UnavailableError{Reason: reason(h.readError), Err: h.readError}
	}
	return nil
}

// note records an error of the database: it is logged, Health may report it, and after damage nothing is Usable.
// reading is set for reads.
func (d *DB) note(verb string, err error, reading bool) { d.health.note(verb, err, reading, d.now()) }

// Health returns a store.UnavailableError if a read has failed within the last minute. It makes no access.
func (d *DB) Health() error { return d.health.check(d.now()) }
