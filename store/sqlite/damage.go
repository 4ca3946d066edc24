package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// A damaged page keeps back what is on it, and nothing else. A job whose row cannot be read is skipped; a lane with an unreadable
// part of its index is blocked. Both last until the store is opened again, and keep the store unready.

// skipJob passes over a job that cannot be read, or written, from now on.
func (tx *tx) skipJob(q *memory.Queue, n int64, verb string, err error) {
	if !q.PartlyUnreadable {
		q.PartlyUnreadable = true
		tx.mem.Damages++
	}
	if !tx.mem.Unreadable[n] {
		tx.mem.Unreadable[n] = true
		tx.mem.Damages++
		tx.store.log.Error("job on a damaged page of the database, skipping it",
			"topic", q.Name.Topic, "lane", q.Name.Lane, "number", n, "during", verb, "err", err)
	}
	if db.IsError(err) {
		tx.store.db.Note(verb, err, true)
	}
}

// setAside keeps a lane back whose jobs cannot be found.
func (tx *tx) setAside(q *memory.Queue, verb string, err error) {
	if !q.Damaged {
		q.Damaged = true
		tx.mem.Damages++
		tx.store.log.Error("jobs of a lane on a damaged page of the database, blocking the lane",
			"topic", q.Name.Topic, "lane", q.Name.Lane, "during", verb, "err", err)
	}
	tx.store.db.Note(verb, err, true)
	tx.touch(q)
	q.Head, q.HeadKnown = memory.NoHead, true
	tx.toPlan = append(tx.toPlan, q)
}

// unlessDamaged does what deliveries can do without. When a damaged page keeps it from being done, missing notes that, and
// it is left undone until the store is opened again: the transaction, which fails with the error, is run again without it.
func (tx *tx) unlessDamaged(missing *bool, verb string, do func() error) error {
	if *missing {
		return nil
	}
	err := do()
	if db.IsDamage(err) {
		*missing = true
		tx.mem.Damages++
		tx.store.log.Error("damaged page of the database, skipping a task", "task", verb, "err", err)
		tx.store.db.Note(verb, err, true)
	}
	return err
}

// readEach is the reading of a claim for a queue of which not all can be read: it finds the jobs in the index, and reads
// each by itself.
func (c *claim) readEach(tx *tx, q *memory.Queue, read func([]driver.Value) error) error {
	var numbers []int64
	err := tx.Query(table.FirstWaiting, func(v []driver.Value) error {
		n := db.Int(v[1])
		if !tx.mem.IsSkipped(n) {
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
			tx.skipJob(q, n, "claim a job", err)
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
		if tx.mem.Leases[h.Ref] != h {
			return nil
		}
		tx.skipJob(h.Queue, h.N, verb, errDamagedPage)
		tx.endLease(h)
		q := h.Queue
		q.Waiting++
		q.Topic.Waiting++
		q.HeadKnown = false
		return nil
	}})
}

// errDamagedPage is why a job is abandoned.
var errDamagedPage = errors.New("its rows cannot be written")
