package txn

import (
	"database/sql/driver"
	"log/slog"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/throttle"
)

// A Base is what transactions share.
type Base struct {
	Mem      *memory.State
	Wakeups  *memory.Wakeups
	Defaults *policy.Limits
	Log      *slog.Logger
	Clock    clock.Reader
	// Note notes an error of the database; see db.DB.
	Note   func(verb string, err error, reading bool)
	Serial uint64 // of transactions
}

// Begin begins a transaction.
func (s *Base) Begin(tx *Tx, t *db.Tx) {
	s.Serial++
	now := s.Clock()
	s.Mem.Steps.Observe(now, s.Mem.LastN)
	*tx = Tx{Tx: t, Base: s, Mem: s.Mem, Now: now, Serial: s.Serial, damages: s.Mem.Damages}
	Save(tx, &s.Mem.Numbers)
}

// ParseThrottle reads a queue's stored throttle. An unreadable one is logged and dropped.
func (s *Base) ParseThrottle(name job.Queue, column driver.Value, now clock.Instant) *throttle.Throttle {
	g, err := throttle.Parse(column, now)
	if err != nil {
		s.Log.Error("lane throttle unreadable, dropping its cooldown and rate", "topic", name.Topic, "lane", name.Lane, "err", err)
	}
	return g
}
