package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/txn"
)

// A damaged page keeps back what is on it, and nothing else. A job whose row cannot be read is skipped; a lane with an unreadable
// part of its index is blocked. Both last until the store is opened again, and keep the store unready.

// readEach is the reading of a claim for a queue of which not all can be read: it finds the jobs in the index, and reads
// each by itself.
func (c *claim) readEach(tx *tx, q *memory.Queue, read func([]driver.Value) error) error {
	var numbers []int64
	err := tx.Query(table.FirstWaiting, func(v []driver.Value) error {
		n := db.Int(v[1])
		if !tx.Mem.IsSkipped(n) {
			numbers = append(numbers, n)
		}
		if len(numbers) > c.request.Max {
			return db.ErrStop
		}
		return nil
	}, q.Id, q.Head.Due, q.Head.N)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		stop := false
		err := tx.Query(table.ClaimableJob, func(v []driver.Value) error {
			err := read(v)
			stop = err != nil
			return err
		}, n)
		switch {
		case db.IsDamage(err):
			tx.SkipJob(q, n, "claim a job", err)
		case err != nil || stop:
			return err
		}
	}
	return nil
}

// abandon ends the lease of a job whose attempt can neither be recorded nor ended. In the database the job waits again; claims
// pass over it.
func (s *Store) abandon(ctx context.Context, h *memory.Lease, verb string) error {
	return s.db.Submit(ctx, &op{Verb: verb, Weight: 1, Run: func(tx *tx) error {
		if tx.Mem.Leases[h.Ref] != h {
			return nil
		}
		tx.SkipJob(h.Queue, h.N, verb, txn.ErrDamaged)
		tx.EndLease(h)
		q := h.Queue
		q.Waiting++
		q.Topic.Waiting++
		q.HeadKnown = false
		return nil
	}})
}
