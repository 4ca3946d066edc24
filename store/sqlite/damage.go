package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"math"

	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// A damaged page keeps back what is on it, and nothing else. A job whose row cannot be read is skipped; a lane with an unreadable
// part of its index is blocked. Both last until the store is opened again, and keep the store unready.

// noHead is the first of a queue whose waiting jobs cannot be read: it is never due.
var noHead = table.Key{Due: math.MaxInt64}

// isSkipped reports whether a claim passes over a job in the index of waiting jobs: it is leased, since a clock that was set
// back has put others before it, or it cannot be read.
func (m *memory) isSkipped(n int64) bool {
	return m.leaseByNumber[n] != nil || m.unreadable[n]
}

// skipJob passes over a job that cannot be read, or written, from now on.
func (tx *tx) skipJob(q *queue, n int64, verb string, err error) {
	if !q.partlyUnreadable {
		q.partlyUnreadable = true
		tx.mem.damages++
	}
	if !tx.mem.unreadable[n] {
		tx.mem.unreadable[n] = true
		tx.mem.damages++
		tx.store.log.Error("job on a damaged page of the database, skipping it",
			"topic", q.name.Topic, "lane", q.name.Lane, "number", n, "during", verb, "err", err)
	}
	if db.IsError(err) {
		tx.store.db.Note(verb, err, true)
	}
}

// setAside keeps a lane back whose jobs cannot be found.
func (tx *tx) setAside(q *queue, verb string, err error) {
	if !q.damaged {
		q.damaged = true
		tx.mem.damages++
		tx.store.log.Error("jobs of a lane on a damaged page of the database, blocking the lane",
			"topic", q.name.Topic, "lane", q.name.Lane, "during", verb, "err", err)
	}
	tx.store.db.Note(verb, err, true)
	tx.touch(q)
	q.head, q.headKnown = noHead, true
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
		tx.mem.damages++
		tx.store.log.Error("damaged page of the database, skipping a task", "task", verb, "err", err)
		tx.store.db.Note(verb, err, true)
	}
	return err
}

// readEach is the reading of a claim for a queue of which not all can be read: it finds the jobs in the index, and reads
// each by itself.
func (c *claim) readEach(tx *tx, q *queue, read func([]driver.Value) error) error {
	var numbers []int64
	err := tx.Query(table.FirstWaiting, func(v []driver.Value) error {
		n := db.Int(v[1])
		if !tx.mem.isSkipped(n) {
			numbers = append(numbers, n)
		}
		if len(numbers) > c.request.Max {
			return db.ErrStop
		}
		return nil
	}, q.id, q.head.Due, q.head.N)
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
func (s *Store) abandon(ctx context.Context, h *lease, verb string) error {
	return s.db.Submit(ctx, &op{Verb: verb, Weight: 1, Run: func(tx *tx) error {
		if tx.mem.leases[h.ref] != h {
			return nil
		}
		tx.skipJob(h.queue, h.n, verb, errDamagedPage)
		tx.endLease(h)
		q := h.queue
		q.waiting++
		q.topic.waiting++
		q.headKnown = false
		return nil
	}})
}

// errDamagedPage is why a job is abandoned.
var errDamagedPage = errors.New("its rows cannot be written")
