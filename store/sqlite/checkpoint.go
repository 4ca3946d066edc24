package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"time"
)

// The log (-wal) is moved into the database by its own connection, so that no commit has to wait for it. When the log has grown
// large nevertheless, because readers and writers left no pause, the writer truncates it between two transactions.
const (
	// checkpointPages is how many pages are written between two checkpoints.
	checkpointPages = 1000
	// cutAbove is the size of the log in bytes at which the writer cuts it.
	cutAbove = 64 << 20
	// cutPause is how long the writer leaves a log alone that a reader kept it from cutting.
	cutPause = 5 * time.Second
)

// noteWritten signals the checkpointer after checkpointPages. Only the writer calls it.
func (s *Store) noteWritten(pages int) {
	if s.dirty += pages; s.dirty < checkpointPages {
		return
	}
	s.dirty = 0
	select {
	case s.checks <- struct{}{}:
	default:
	}
}

// checkpoint moves the log into the database at each signal of checks, until the store closes.
func (s *Store) checkpoint() {
	var c *conn
	defer func() {
		if c != nil {
			s.closeQuietly(c)
		}
	}()
	for {
		select {
		case <-s.checks:
		case <-s.closing:
			return
		}
		if c == nil {
			var err error
			if c, err = connectAgain(s.path, s.files, false); err != nil {
				s.log.Warn("checkpoint has no connection", "err", err)
				continue
			}
		}
		if !s.beforeCheckpoint() {
			return
		}
		_, all, err := moveLog(c, "PASSIVE")
		if err != nil {
			s.later(shared, func() { s.noteFault("checkpoint", err) })
			s.closeQuietly(c)
			c = nil
			continue
		}
		if all {
			s.checkpointed.Store(true)
		}
		if info, err := os.Stat(s.path + "-wal"); err == nil && info.Size() > s.cutAbove.Load() {
			s.later(shared, s.cutLog)
		}
	}
}

// cutLog moves the rest of the log and empties it. A reader in the middle of a page may keep that from happening: the
// writer does not wait for it, and tries again with the first checkpoint after cutPause.
func (s *Store) cutLog() {
	now := s.clock().mono
	if s.conn == nil || s.broken || now < s.cutAgain {
		return
	}
	busy, err := s.cut()
	if err != nil {
		s.noteFault("checkpoint", err)
	}
	if busy || err != nil {
		s.cutAgain = now + int64(cutPause)
	}
}

// cut is cutLog without waiting for anybody's lock.
func (s *Store) cut() (busy bool, err error) {
	if err := s.conn.execText("PRAGMA busy_timeout=0"); err != nil {
		return false, err
	}
	s.markLog()
	busy, all, err := moveLog(s.conn, "TRUNCATE")
	if all {
		s.checkpointed.Store(true)
	}
	return busy, errors.Join(err, s.conn.execText(fmt.Sprintf("PRAGMA busy_timeout=%d", busyTimeout)))
}

// beforeCheckpoint has the writer mark the log; false: the store closes.
func (s *Store) beforeCheckpoint() bool {
	done := make(chan struct{})
	s.later(shared, func() {
		defer close(done)
		s.markLog()
	})
	select {
	case <-done:
		return true
	case <-s.written:
		return false
	}
}

// moveLog makes a checkpoint; busy says that a reader kept it from its end, all that it has moved the whole log.
func moveLog(c *conn, mode string) (busy, all bool, err error) {
	err = c.queryText(shared, "PRAGMA wal_checkpoint("+mode+")", func(v []driver.Value) error {
		busy = integer(v[0]) != 0
		all = !busy && integer(v[1]) == integer(v[2])
		return nil
	})
	return busy, all, err
}

// later has the writer do something between two transactions, and waits until it has begun.
func (s *Store) later(ctx context.Context, task func()) {
	select {
	case s.tasks <- task:
	case <-s.closing:
	case <-ctx.Done():
	}
}

func (s *Store) closeQuietly(c *conn) {
	if err := c.close(); err != nil {
		s.log.Debug("a connection was closed", "err", err)
	}
}
