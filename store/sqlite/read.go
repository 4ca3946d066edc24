package sqlite

import (
	"context"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// Get implements store.Shard.
func (s *Store) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	var found *table.Row
	err := s.db.Read(ctx, "read a job", func(ctx context.Context, c *db.Conn) (err error) {
		found, err = Job(ctx, c, ref)
		return err
	})
	if err != nil {
		return job.Job{}, err
	}
	return found.View(s.clock()), nil
}

// Known implements store.Shard.
func (s *Store) Known(ctx context.Context, refs []job.Ref) (statuses []store.IDStatus, err error) {
	checkBatch("ids", len(refs))
	err = s.db.Read(ctx, "look for ids", func(ctx context.Context, c *db.Conn) error {
		statuses, err = known(ctx, c, refs)
		return err
	})
	if err != nil {
		return nil, err
	}
	return statuses, nil
}

// List implements store.Shard.
func (s *Store) List(ctx context.Context, filter store.Filter) (page store.Page, err error) {
	l, err := newJobList(filter, s.clock(), &s.unreadable)
	if err != nil {
		return store.Page{}, err
	}
	err = s.db.Read(ctx, "list jobs", func(ctx context.Context, c *db.Conn) error {
		page, err = l.Run(ctx, c)
		return err
	})
	if err != nil {
		return store.Page{}, err
	}
	return page, nil
}
