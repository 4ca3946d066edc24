package db

import (
	"errors"
	"fmt"
	"time"
)

// The log (-wal) is moved into the database by a separate connection, so that no commit has to wait for it. If the log
// grows large nevertheless, because readers and writers leave no pause, the writer truncates it between two
// transactions.
const (
	// checkpointPages is how many pages are written between two checkpoints.
	checkpointPages = 1000
	// truncateAbove is the size of the log in bytes above which the writer truncates it.
	truncateAbove = 64 << 20
	// truncatePause is how long a log that could not be truncated, because a reader uses it, is left alone.
	truncatePause = 5 * time.Second
)

// LargeLog is the size of a log in bytes that only a reader explains: one that keeps its snapshot for long.
const LargeLog = 4 * truncateAbove

// LogBytes returns the size of the log; 0: there is none.
func (d *DB) LogBytes() int64 { return LogBytes(d.path) }

// countWritten counts written pages and signals the checkpointer after checkpointPages. Only the writer calls it.
func (d *DB) countWritten(pages int) {
	if d.dirty += pages; d.dirty < checkpointPages {
		return
	}
	d.dirty = 0
	d.signalCheckpoint()
}

func (d *DB) signalCheckpoint() {
	select {
	case d.checks <- struct{}{}:
	default:
	}
}

// checkpoint moves the log into the database at each signal of checks, until the database is closed. A log that stays
// large is moved again after truncatePause: the reader that has kept it may be gone, and nothing else be written.
func (d *DB) checkpoint() {
	var c *Conn
	defer func() {
		if c != nil {
			d.closeQuietly(c)
		}
	}()
	var pause <-chan time.Time // set while the log is not truncated
	kept := false              // a reader keeps the log, and a line says so
	for {
		select {
		case <-d.checks:
		case <-pause:
			pause = nil
		case <-d.closing:
			return
		}
		var moved, busy bool
		c, moved = d.moveLog(c)
		if moved && pause == nil && d.LogBytes() > d.truncateAbove {
			d.inWriter(func() { busy = d.truncateLog() })
		}
		size := d.LogBytes()
		switch {
		case size <= d.truncateAbove:
			if pause = nil; kept {
				d.log.Info("the log of the database has shrunk again", "database", d.path, "bytes", size)
			}
			kept = false
		case pause == nil:
			pause = time.After(truncatePause)
		}
		if busy && size > d.largeLog && !kept {
			kept = true
			d.log.Warn("a reader keeps the log of the database (-wal) from shrinking: end what reads the database "+
				"for long",
				"database", d.path, "bytes", size)
		}
	}
}

// moveLog moves the log into the database, as far as readers let it, by a connection that it opens and returns. It
// waits for no reader. moved is false if that failed, which is logged.
func (d *DB) moveLog(c *Conn) (_ *Conn, moved bool) {
	if c == nil {
		var err error
		if c, err = d.connect(false); err != nil {
			d.log.Warn("checkpoint has no connection", "err", err)
			return nil, false
		}
	}
	if !d.inWriter(d.markLog) {
		return c, false
	}
	_, all, err := checkpointLog(c, "PASSIVE")
	if err != nil {
		d.later(func() { d.noteWriterError("checkpoint", err) })
		d.closeQuietly(c)
		return nil, false
	}
	if all {
		d.checkpointed.Store(true)
	}
	return c, true
}

// truncateLog moves the rest of the log and empties it. It does not wait for readers: busy reports that one uses the
// log. Only the writer calls it.
func (d *DB) truncateLog() (busy bool) {
	if d.conn == nil || d.broken {
		return false
	}
	busy, err := d.truncate()
	if err != nil {
		d.noteWriterError("checkpoint", err)
	}
	return busy
}

// truncate is truncateLog for a connection that works. It waits for no lock.
func (d *DB) truncate() (busy bool, err error) {
	if err := d.conn.execText("PRAGMA busy_timeout=0"); err != nil {
		return false, err
	}
	d.markLog()
	busy, all, err := checkpointLog(d.conn, "TRUNCATE")
	if all {
		d.checkpointed.Store(true)
	}
	return busy, errors.Join(err, d.conn.execText(fmt.Sprintf("PRAGMA busy_timeout=%d", busyTimeout)))
}

// inWriter has the writer run a task between two transactions, and waits for its end. It returns false if the database
// is closed.
func (d *DB) inWriter(task func()) bool {
	done := make(chan struct{})
	d.later(func() {
		defer close(done)
		task()
	})
	select {
	case <-done:
		return true
	case <-d.written:
		return false
	}
}

// checkpointLog runs a checkpoint. busy reports that a reader kept it from completing, all that the whole log was
// moved.
func checkpointLog(c *Conn, mode string) (busy, all bool, err error) {
	var blocked, pages, moved int64
	err = c.ints(shared, "PRAGMA wal_checkpoint("+mode+")", &blocked, &pages, &moved)
	return blocked != 0, err == nil && blocked == 0 && pages == moved, err
}

// later has the writer run a task between two transactions, and waits until it has begun.
func (d *DB) later(task func()) {
	select {
	case d.tasks <- task:
	case <-d.closing:
	}
}

func (d *DB) closeQuietly(c *Conn) {
	if err := c.close(); err != nil {
		d.log.Debug("closing a connection failed", "err", err)
	}
}
