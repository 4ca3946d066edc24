package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// readRunning reads the leased jobs of a connection's snapshot, by number.
func readRunning(ctx context.Context, c *db.Conn) (map[int64]table.Mark, error) {
	running := make(map[int64]table.Mark)
	err := c.Query(ctx, table.ReadLeases, func(v []driver.Value) error {
		marks, _ := table.ParseMarks(db.Text(v[2])) // Open has logged rows that cannot be read
		for _, m := range marks {
			running[m.N] = m
		}
		return nil
	})
	return running, err
}

// Job reads a job with its history. It fails with store.ErrNotFound.
func Job(ctx context.Context, c *db.Conn, ref job.Ref) (*table.Row, error) {
	return find(ctx, c, table.FindJob, ref, func(*table.Cells, *table.Row) {})
}

// record reads a job with its history and the maximum age that its topic had. It fails with store.ErrNotFound.
func record(ctx context.Context, c *db.Conn, ref job.Ref) (*table.Row, error) {
	return find(ctx, c, table.FindRecord, ref,
		func(rest *table.Cells, r *table.Row) { r.MaxAge = time.Duration(rest.Int()) * time.Millisecond })
}

// find reads a job with a statement, and further columns with rest.
func find(
	ctx context.Context, c *db.Conn, which db.Statement, ref job.Ref, rest func(*table.Cells, *table.Row),
) (found *table.Row, err error) {
	err = c.Query(ctx, which, func(v []driver.Value) error {
		c := table.Cells(v)
		found = c.Row()
		c.Names(found)
		c.Body(found)
		rest(&c, found)
		return found.Decode()
	}, ref.ID, ref.Namespace)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, store.ErrNotFound
	}
	if found.State == job.Scheduled {
		if err := c.Query(ctx, table.IsLeased, func(v []driver.Value) error {
			if db.Int(v[0]) == 1 {
				found.State = job.Running
			}
			return nil
		}, found.N); err != nil {
			return nil, err
		}
	}
	return found, readRecord(ctx, c, found)
}

// readRecord reads a job's record. The first entry of all is in its own table and stays, so there may be one too many
// of a sort.
func readRecord(ctx context.Context, c *db.Conn, r *table.Row) error {
	add := func(v []driver.Value) error {
		if err := r.AddEntry([]byte(db.Text(v[0]))); err != nil {
			return fmt.Errorf("read the record of job %s: %w", r.ID, err)
		}
		return nil
	}
	if r.First != 0 {
		if err := c.Query(ctx, table.ReadFirstAttempt, add, r.First); err != nil {
			return err
		}
	}
	return c.Query(ctx, table.ReadAttempts, add, r.N)
}

// known returns what is known of ids.
func known(ctx context.Context, c *db.Conn, refs []job.Ref) ([]store.IDStatus, error) {
	statuses := make([]store.IDStatus, len(refs))
	for i, ref := range refs {
		if err := c.Query(ctx, table.KnownID, func(v []driver.Value) error {
			state, exists := strings.CutPrefix(db.Text(v[0]), table.JobExists)
			statuses[i] = store.IDStatus{Exists: exists, Ended: job.State(state)}
			return nil
		}, ref.ID, ref.Namespace); err != nil {
			return nil, err
		}
	}
	return statuses, nil
}
