package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/file"
)

// Store is the engine. Open makes one.
type Store struct {
	path     string
	log      *slog.Logger
	defaults policy.Limits
	clock    clock
	lock     *file.Lock
	wakeups  *wakeups
	lead     leadLock
	readers  *readers
	files    *file.Watch
	health   *health

	ops     chan *op
	closing chan struct{} // closed by Close
	written chan struct{} // closed when the writer has ended
	tasks   chan func()   // what the writer is to do between transactions
	checks  chan struct{} // wakes the checkpointer
	closed  func() error
	// cutAbove is the constant of that name; tests lower it.
	cutAbove atomic.Int64
	others   sync.WaitGroup
	// checkpointed says that a checkpoint has moved the whole log, which may then begin anew.
	checkpointed atomic.Bool

	// What follows is the writer's alone.
	conn           *conn
	mem            *memory
	group          []*op
	serial         uint64
	level          int // of PRAGMA synchronous
	broken         bool
	filesUnchecked bool   // the files beside the database have not been looked at since the connection was opened
	salt           uint64 // of the log when its last mark was written
	// unsynced says that fsync has failed, and the log has not been moved into the database since.
	unsynced bool
	lost     bool // the files are not those that were opened
	commits  int64
	dirty    int // pages written since the last signal to the checkpointer
	// cutAgain is when the log may be cut again after a cut that a reader kept from its end, monotonic.
	cutAgain int64
	// loggedOutbox are the outbox entries that were complained about.
	loggedOutbox map[int64]bool
}

var _ store.Store = (*Store)(nil)

// Open opens the database, or makes it, and ends the attempts that were under way when it was last used, as
// lost. ctx limits the opening, not the store's life.
//
// It fails, with one line that says what to do, when the folder is missing or not writable, when another process uses
// the database, when the file is no database or another program's, and when it has another schema.
func Open(ctx context.Context, o Options) (*Store, error) {
	return open(ctx, o, newClock(o.Now))
}

func open(ctx context.Context, o Options, clock clock) (_ *Store, err error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("open a sqlite store: %w", err)
	}
	path, err := file.Resolve(o.Path)
	if err != nil {
		return nil, err
	}
	s := &Store{
		path:     path,
		log:      o.Logger,
		defaults: o.Defaults.Limits(),
		clock:    clock,
		wakeups:  newWakeups(),
		files:    file.NewWatch(path),
		ops:      make(chan *op, groupCalls),
		closing:  make(chan struct{}),
		written:  make(chan struct{}),
		tasks:    make(chan func()),
		checks:   make(chan struct{}, 1),
		mem:      newMemory(),

		loggedOutbox: make(map[int64]bool),
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.cutAbove.Store(cutAbove)
	s.readers, s.health = newReaders(path, s.files), newHealth(s.log)
	s.closed = sync.OnceValue(s.shut)
	if s.lock, err = file.Acquire(path, false, s.log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if err := checkLog(ctx, path); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if s.conn, err = connect(path, false); err != nil {
		return nil, fmt.Errorf("open the database %s: %w", path, unavailable(err))
	}
	if err := prepare(s.conn, path); err != nil {
		return nil, fmt.Errorf("open the database %s: %w", path, unavailable(err))
	}
	if err := s.load(ctx); err != nil {
		return nil, fmt.Errorf("read the database %s: %w", path, unavailable(err))
	}
	s.lookAtFiles()
	s.markLog()
	s.salt = logSalt(path)
	go s.write()
	s.others.Go(s.checkpoint)
	return s, nil
}

// Shards is the store itself, its one shard.
func (s *Store) Shards() []store.Shard { return []store.Shard{s} }

// Ping implements store.Store: it commits a write that needs room on the disk, and fsync, as a registration does. It also
// fails when the database was found to be damaged.
func (s *Store) Ping(ctx context.Context) error {
	const verb = "ping the database"
	if err := s.submit(ctx, &op{verb: verb, durable: true, weight: 1, run: func(tx *tx) error {
		if err := tx.exec(probe); err != nil {
			return err
		}
		if err := tx.exec(deleteOutbox, "", ""); err != nil {
			return err
		}
		return tx.exec(updateMeta, tx.now.ms, "pinged")
	}}); err != nil {
		return err
	}
	if err := s.health.check(s.clock()); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return nil
}

// Close implements store.Store: what the writer has in hand is committed, the rest fails with ErrUnavailable. Another
// Close answers as the first.
func (s *Store) Close() error { return s.closed() }

func (s *Store) shut() error {
	close(s.closing)
	s.wakeups.close()
	<-s.written
	s.others.Wait()
	s.markLog()
	if err := s.release(); err != nil {
		return fmt.Errorf("close the database %s: %w", s.path, err)
	}
	return nil
}

// release releases everything. The last connection to close moves the log into the database and removes it.
func (s *Store) release() error {
	faults := []error{s.readers.close()}
	if s.conn != nil {
		faults = append(faults, s.conn.close())
	}
	return errors.Join(append(faults, s.lock.Unlock())...)
}
