package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// Store is the engine. Open returns it.
type Store struct {
	*keeping
	store.LocalTail
	db        *db.Writer[*unit.Unit]
	clock     clock.Reader
	wakeups   *memory.Wakeups
	closeOnce func() error
	// unreadable logs jobs that cannot be decoded.
	unreadable logs.Limited

	// The fields below belong to the writer.
	mem *memory.State
	env *unit.Env
}

var _ store.Store = (*Store)(nil)

// An op is a call to the writer.
type op = db.Call[*unit.Unit]

// Open opens the database, or makes it, and ends the attempts that were under way when it was last used, as
// lost. ctx limits the opening, not the store's life.
//
// It fails, with one line that says what to do, when the folder is missing or not writable, when another process uses
// the database, when the file is no database or another program's, and when it has another schema.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("open a sqlite store: %w", err)
	}
	now := o.Clock
	if now == nil {
		now = clock.New(nil)
	}
	log := cmp.Or(o.Logger, slog.Default())
	s := &Store{
		clock:      now,
		wakeups:    memory.NewWakeups(),
		unreadable: logs.Limited{Logger: log, Interval: time.Minute, Burst: 20},
		mem:        memory.New(),
	}
	s.env = &unit.Env{
		Mem: s.mem, Wakeups: s.wakeups, Defaults: &o.Limits, Log: log, Clock: now,
	}
	s.closeOnce = sync.OnceValue(s.shut)
	var err error
	if s.db, err = db.Open(ctx, db.Options{
		Path: o.Path, Schema: table.Schema, Logger: log, Now: func() int64 { return now().Mono }, Driver: o.driver,
	}, s.env.Begin); err != nil {
		return nil, err
	}
	s.keeping = newKeeper(s.db, now, log)
	if err := s.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("read the database %s: %w", s.db.Path(), db.Unavailable(err)), s.db.Close())
	}
	s.db.Start()
	return s, nil
}

// Shards is the store itself, its one shard.
func (s *Store) Shards() []store.Shard { return []store.Shard{s} }

// Ping implements store.Store: it commits a write that needs room on the disk, and fsync, as a registration does. It
// also fails for a while after a failed read.
func (s *Store) Ping(ctx context.Context) error {
	const verb = "ping the database"
	if err := s.db.Submit(ctx, &op{Verb: verb, Durable: true, Weight: 1, Run: func(u *unit.Unit) error {
		if err := u.Exec(table.Probe); err != nil {
			return err
		}
		if err := u.Exec(table.DeleteOutbox, "", ""); err != nil {
			return err
		}
		return u.Exec(table.UpdateMeta, "pinged", u.Now.Millis)
	}}); err != nil {
		return err
	}
	if err := s.db.Health(); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return nil
}

// LogBytes returns the size of the write-ahead log in bytes, for package metrics. It grows while a reader keeps its
// snapshot.
func (s *Store) LogBytes() int64 { return s.db.LogBytes() }

// Close implements store.Store: what the writer has in hand is committed, the rest fails with ErrUnavailable. Another
// Close answers as the first.
func (s *Store) Close() error { return s.closeOnce() }

func (s *Store) shut() error {
	s.wakeups.Close()
	return s.db.Close()
}

// checkBatch panics if a call exceeds store.MaxBatch.
func checkBatch(what string, n int) {
	if n > store.MaxBatch {
		panic(fmt.Sprintf("sqlite: %d %s in one call, more than store.MaxBatch", n, what))
	}
}
