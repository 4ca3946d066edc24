package db

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ringback/ringback/store/sqlite/file"
)

// The log (-wal) is moved into the database by a separate connection, so that no commit has to wait for it. If the log grows
// large nevertheless, because readers and writers leave no pause, the writer truncates it between two transactions.
const (
	// checkpointPages is how many pages are written between two checkpoints.
	checkpointPages = 1000
	// truncateAbove is the size of the log in bytes above which the writer truncates it.
	truncateAbove = 64 << 20
	// truncatePause is how long the writer waits before it tries again to truncate a log that a reader has in use.
	truncatePause = 5 * time.Second
)

// countWritten counts written pages and signals the checkpointer after checkpointPages. Only the writer calls it.
func (d *DB) countWritten(pages int) {
	if d.dirty += pages; d.dirty < checkpointPages {
		return
	}
	d.dirty = 0
	select {
	case d.checks <- struct{}{}:
	default:
	}
}

// checkpoint moves the log into the database at each signal of checks, until the database is closed.
func (d *DB) checkpoint() {
	var c *Conn
	defer func() {
		if c != nil {
			d.closeQuietly(c)
		}
	}()
	for {
		select {
		case <-d.checks:
		case <-d.closing:
			return
		}
		if c == nil {
			var err error
			if c, err = d.connect(false); err != nil {
				d.log.Warn("checkpoint has no connection", "err", err)
				continue
			}
		}
		if !d.markBeforeCheckpoint() {
			return
		}
		_, all, err := checkpointLog(c, "PASSIVE")
		if err != nil {
			d.later(shared, func() { d.noteWriterError("checkpoint", err) })
			d.closeQuietly(c)
			c = nil
			continue
		}
		if all {
			d.checkpointed.Store(true)
		}
		if info, err := os.Stat(d.path + file.WAL); err == nil && info.Size() > d.truncateAbove {
			d.later(shared, d.truncateLog)
		}
	}
}

// truncateLog moves the rest of the log and empties it. It does not wait for readers: while one needs the log, it tries again
// with the first checkpoint after truncatePause. Only the writer calls it.
func (d *DB) truncateLog() {
	now := d.now()
	if d.conn == nil || d.broken || now < d.truncateAgain {
		return
	}
	busy, err := d.truncate()
	if err != nil {
		d.noteWriterError("checkpoint", err)
	}
	if busy || err != nil {
		d.truncateAgain = now + int64(truncatePause)
	}
}

// truncate is truncateLog at any time. It waits for no lock.
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

// markBeforeCheckpoint has the writer mark the log. It returns false if the database is closed.
func (d *DB) markBeforeCheckpoint() bool {
	done := make(chan struct{})
	d.later(shared, func() {
		defer close(done)
		d.markLog()
	})
	select {
	case <-done:
		return true
	case <-d.written:
		return false
	}
}

// checkpointLog runs a checkpoint. busy reports that a reader kept it from completing, all that the whole log was moved.
func checkpointLog(c *Conn, mode string) (busy, all bool, err error) {
	var blocked, pages, moved int64
	err = c.ints(shared, "PRAGMA wal_checkpoint("+mode+")", &blocked, &pages, &moved)
	return blocked != 0, err == nil && blocked == 0 && pages == moved, err
}

// later has the writer run a task between two transactions, and waits until it has begun.
func (d *DB) later(ctx context.Context, task func()) {
	select {
	case d.tasks <- task:
	case <-d.closing:
	case <-ctx.Done():
	}
}

func (d *DB) closeQuietly(c *Conn) {
	if err := c.close(); err != nil {
		d.log.Debug("closing a connection failed", "err", err)
	}
}
