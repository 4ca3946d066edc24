package unit

import (
	"database/sql/driver"
	"log/slog"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
)

// An Env is what all units of work share.
type Env struct {
	Mem      *memory.State
	Wakeups  *memory.Wakeups
	Defaults *policy.Limits
	Log      *slog.Logger
	Clock    clock.Reader
	Serial   uint64 // of the last unit
}

// Begin returns the unit of work of a transaction.
func (e *Env) Begin(tx *db.Tx) *Unit {
	e.Serial++
	now := e.Clock()
	e.Mem.Steps.Observe(now, e.Mem.LastN)
	u := &Unit{Tx: tx, Env: e, Mem: e.Mem, Now: now, Serial: e.Serial}
	Save(u, &e.Mem.Numbers)
	return u
}

// ParseThrottle reads a queue's stored throttle. An unreadable one is logged and dropped.
func (e *Env) ParseThrottle(name job.Queue, column driver.Value, now clock.Instant) *memory.Throttle {
	g, err := memory.Parse(column, e.Mem.Steps.Stored(now))
	if err != nil {
		e.Log.Error("lane throttle unreadable, dropping its cooldown and rate", "topic", name.Topic,
			"lane", name.Lane, "err", err)
	}
	return g
}
