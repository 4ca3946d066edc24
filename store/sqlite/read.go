package sqlite

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

// Get implements store.Shard.
func (s *Store) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	var found *table.Row
	err := s.db.Read(ctx, "read a job", func(ctx context.Context, c *db.Conn) error {
		err := c.Query(ctx, table.FindJob, func(v []driver.Value) error {
			c := table.Cells(v)
			found = c.Row()
			c.Names(found)
			c.Body(found)
			return found.Decode()
		}, ref.ID, ref.Namespace)
		if err != nil {
			return err
		}
		if found == nil {
			return store.ErrNotFound
		}
		if found.State == job.Scheduled {
			if err := c.Query(ctx, table.IsLeased, func(v []driver.Value) error {
				if db.Int(v[0]) == 1 {
					found.State = job.Running
				}
				return nil
			}, found.N); err != nil {
				return err
			}
		}
		return readRecord(ctx, c, found)
	})
	if err != nil {
		return job.Job{}, err
	}
	return found.View(s.clock()), nil
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

// Known implements store.Shard.
func (s *Store) Known(ctx context.Context, refs []job.Ref) ([]bool, error) {
	bound("ids", len(refs))
	known := make([]bool, len(refs))
	err := s.db.Read(ctx, "look for ids", func(ctx context.Context, c *db.Conn) error {
		for i, ref := range refs {
			if err := c.Query(ctx, table.KnownID, func(v []driver.Value) error {
				known[i] = db.Int(v[0]) != 0
				return nil
			}, ref.ID, ref.Namespace); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return known, nil
}
