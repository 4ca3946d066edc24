package db

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	lib "modernc.org/sqlite/lib"

	"github.com/ringback/ringback/store"
)

// Options are the options of Open. All but Driver are required.
type Options struct {
	// Path of the database file. It is created if it is missing, its folder is not.
	Path string
	// Schema is the tables of the database.
	Schema Schema
	// Logger gets errors that no caller sees.
	Logger *slog.Logger
	// Now returns a monotonic time in nanoseconds.
	Now func() int64
	// Driver opens the connections; nil: SQLite's. Tests use it to inject errors.
	Driver driver.Driver
}

// A DB is an open database. It is used through a Writer.
type DB struct {
	path    string
	log     *slog.Logger
	now     func() int64
	driver  driver.Driver
	lock    *fileLock
	files   *fileWatch
	health  *health
	readers chan *Conn // idle; nil: not open yet

	closing chan struct{} // closed by Close
	written chan struct{} // closed when the writer has ended
	tasks   chan func()   // run by the writer between transactions
	checks  chan struct{} // wakes the checkpointer
	others  sync.WaitGroup
	// truncateAbove and largeLog are the constants of these names; tests lower them.
	truncateAbove, largeLog int64
	// checkpointed is set when a checkpoint has moved the whole log, which may then begin anew.
	checkpointed atomic.Bool

	// The fields below belong to the writer.
	conn        *Conn
	sync        string // the PRAGMA synchronous of conn; empty: not set yet
	broken      bool   // conn must be replaced
	filesUnseen bool   // the log and the shared memory were not recorded since conn was opened
	salt        uint64 // of the log when its last mark was written
	// unsynced is set when fsync has failed, until the log has been moved into the database.
	unsynced bool
	lost     bool // the files are not those that were opened
	dirty    int  // pages written since the last signal to the checkpointer
}

// open locks and opens a database, or makes it.
func open(ctx context.Context, o Options) (_ *DB, err error) {
	path, err := Resolve(o.Path)
	if err != nil {
		return nil, err
	}
	d := &DB{
		path:    path,
		log:     o.Logger,
		now:     o.Now,
		driver:  cmp.Or(o.Driver, sqliteDriver),
		files:   newWatch(path),
		health:  newHealth(o.Logger, path),
		readers: newReaders(),
		closing: make(chan struct{}),
		written: make(chan struct{}),
		tasks:   make(chan func()),
		checks:  make(chan struct{}, 1),

		truncateAbove: truncateAbove, largeLog: LargeLog,
	}
	if d.lock, err = acquireLock(ctx, path, false, o.Logger); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.release())
		}
	}()
	if err := checkLog(ctx, path); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if d.conn, err = connect(d.driver, path, false); err != nil {
		return nil, fmt.Errorf("open the database %s: %w", path, Unavailable(err))
	}
	if err := o.Schema.prepare(d.conn, path); err != nil {
		return nil, fmt.Errorf("open the database %s: %w", path, Unavailable(err))
	}
	return d, nil
}

// release closes the connections and releases the lock. The last connection to close moves the log into the database
// and removes it.
func (d *DB) release() error {
	errs := []error{d.closeReaders()}
	if d.conn != nil {
		errs = append(errs, d.conn.close())
	}
	return errors.Join(append(errs, d.lock.Unlock())...)
}

// Path returns the path of the file, without symbolic links.
func (d *DB) Path() string { return d.path }

// Conn returns the writer's connection, for use before Start and within calls.
func (d *DB) Conn() *Conn { return d.conn }

// Usable returns an error if ctx has ended, or the database is closed or was found damaged.
func (d *DB) Usable(ctx context.Context, verb string) error {
	err := ContextError(ctx)
	if err == nil && d.isClosing() {
		err = ErrClosed
	}
	if err == nil {
		err = d.health.damage()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return nil
}

func (d *DB) isClosing() bool {
	select {
	case <-d.closing:
		return true
	default:
		return false
	}
}

// connect opens another connection, unless a file was removed or replaced.
func (d *DB) connect(reader bool) (*Conn, error) {
	if err := d.files.Check(); err != nil {
		return nil, err
	}
	return connect(d.driver, d.path, reader)
}

// reconnect replaces the writer's connection after an error that it did not survive.
func (d *DB) reconnect() error {
	if !d.broken {
		return nil
	}
	if err := d.files.Check(); err != nil {
		return err
	}
	d.files.ForgetLog()
	if d.conn != nil {
		d.closeQuietly(d.conn)
		d.conn = nil
	}
	c, err := connect(d.driver, d.path, false)
	if err != nil {
		return err
	}
	d.conn, d.broken, d.sync, d.filesUnseen = c, false, "", true
	d.checkpointed.Store(true) // its log may be a new one
	return nil
}

// recordFiles records the files that the writer's connection has opened.
func (d *DB) recordFiles() {
	if err := d.files.Record(); err != nil {
		d.log.Warn("cannot watch the database's files", "err", err)
		return
	}
	d.filesUnseen = false
}

// checkFiles returns an error for a durable transaction if the files are not those that were opened. It is called
// before and after it.
func (d *DB) checkFiles(durable bool) error {
	if !durable {
		return nil
	}
	err := d.files.Check()
	switch {
	case err != nil && !d.lost:
		d.log.Error("a file of the database is gone: nothing more is taken until it is back, and what was taken "+
			"since the last checkpoint is lost with this process",
			"database", d.path, "err", err)
	case err == nil && d.lost:
		d.log.Info("the files of the database are back", "database", d.path)
	}
	d.lost = err != nil
	return err
}

const (
	syncNormal = "PRAGMA synchronous=NORMAL" // commits without fsync
	syncFull   = "PRAGMA synchronous=FULL"   // commits with fsync
)

// setSync chooses whether the next commit is followed by fsync. SQLite accepts the setting outside a transaction only.
func (d *DB) setSync(durable bool) error {
	pragma := syncNormal
	if durable {
		pragma = syncFull
	}
	if d.sync == pragma {
		return nil
	}
	if err := d.conn.execText(pragma); err != nil {
		return err
	}
	d.sync = pragma
	return nil
}

// resync moves the log into the database before a durable transaction if fsync has failed since. The system may treat
// what it could not write as written, so that another fsync of the log would succeed without it.
func (d *DB) resync(durable bool) error {
	if !durable || !d.unsynced {
		return nil
	}
	busy, err := d.truncate()
	switch {
	case err != nil:
		return err
	case busy:
		return &store.UnavailableError{Reason: "the log of the database is in use: it has to be written anew after " +
			"the disk has failed"}
	}
	d.unsynced = false
	return nil
}

// noteWriterError notes an error of the writer outside a transaction, or of the checkpointer: an fsync of the log may
// have failed.
func (d *DB) noteWriterError(verb string, err error) {
	d.unsynced = d.unsynced || primaryCode(err) == lib.SQLITE_IOERR
	d.note(verb, err, false)
}
