package sqlite

import (
	"context"
	"database/sql/driver"
	"os"
)

// The log (-wal) is moved into the database by a connection of its own, so that no commit has to wait for it. Only when
// the log has grown large nevertheless, because nobody paused long enough for it to begin anew, the writer itself cuts
// it between two transactions.
const (
	// checkpointPages is how many pages are written between two checkpoints.
	checkpointPages = 1000
	// cutAbove is the size of the log in bytes at which the writer cuts it.
	cutAbove = 64 << 20
)

// noteWritten tells the checkpointer when enough was written. Only the writer calls it.
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

// checkpoint moves the log into the database whenever it is told, until the store closes.
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
			if c, err = connect(s.path, false); err != nil {
				s.log.Warn("checkpoint has no connection", "err", err)
				continue
			}
		}
		if err := moveLog(c, "PASSIVE"); err != nil {
			s.log.Warn("checkpoint failed", "err", err)
			s.closeQuietly(c)
			c = nil
			continue
		}
		if info, err := os.Stat(s.path + "-wal"); err == nil && info.Size() > s.cutAbove.Load() {
			s.later(shared, s.cutLog)
		}
	}
}

// cutLog moves the rest of the log and empties it. A reader in the middle of a page may keep that from happening; the
// next checkpoint asks again.
func (s *Store) cutLog() {
	if s.conn == nil || s.broken {
		return
	}
	if err := moveLog(s.conn, "TRUNCATE"); err != nil {
		s.log.Warn("log was not cut", "err", err)
	}
}

func moveLog(c *conn, mode string) error {
	return c.queryText(shared, "PRAGMA wal_checkpoint("+mode+")", func([]driver.Value) error { return nil })
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
