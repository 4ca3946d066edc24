package query

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"

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

// Job reads a job with its record. It fails with store.ErrNotFound.
func Job(ctx context.Context, c *db.Conn, ref job.Ref) (found *table.Row, err error) {
	err = c.Query(ctx, table.FindJob, func(v []driver.Value) error {
		c := table.Cells(v)
		found = c.Row()
		c.Names(found)
		c.Body(found)
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

// readRecord reads a job's record. Of attempts and of other events it shows the newest: the first entry of all is in its own table and
// stays.
func readRecord(ctx context.Context, c *db.Conn, r *table.Row) error {
	add := func(v []driver.Value) error {
		var entry job.Attempt
		if err := json.Unmarshal([]byte(db.Text(v[0])), &entry); err != nil {
			return fmt.Errorf("read an attempt of job %s: %w", r.ID, err)
		}
		r.History = append(r.History, entry)
		return nil
	}
	if r.First != 0 {
		if err := c.Query(ctx, table.ReadFirstAttempt, add, r.First); err != nil {
			return err
		}
	}
	if err := c.Query(ctx, table.ReadAttempts, add, r.N); err != nil {
		return err
	}
	room := map[bool]int{true: job.MaxAttempts, false: job.MaxEvents}
	kept := len(r.History)
	for i := len(r.History) - 1; i >= 0; i-- {
		if sort := r.History[i].Kind.IsAttempt(); room[sort] > 0 {
			room[sort]--
			kept--
			r.History[kept] = r.History[i]
		}
	}
	r.History = r.History[kept:]
	return nil
}

// Known reports which ids belong to jobs, or to removed jobs that are remembered.
func Known(ctx context.Context, c *db.Conn, refs []job.Ref) ([]bool, error) {
	known := make([]bool, len(refs))
	for i, ref := range refs {
		if err := c.Query(ctx, table.KnownID, func(v []driver.Value) error {
			known[i] = db.Int(v[0]) != 0
			return nil
		}, ref.ID, ref.Namespace); err != nil {
			return nil, err
		}
	}
	return known, nil
}
