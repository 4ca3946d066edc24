package txn

import (
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
)

// SkipJob skips a job that cannot be read, or written, until the store is opened again.
func (tx *Tx) SkipJob(q *memory.Queue, n int64, verb string, err error) {
	if !tx.Mem.Unreadable[n] {
		tx.Mem.Unreadable[n] = true
		tx.Mem.Damages++
		tx.Base.Log.Error("job on a damaged page of the database, skipping it",
			"topic", q.Name.Topic, "lane", q.Name.Lane, "number", n, "during", verb, "err", err)
	}
	if db.IsError(err) {
		tx.Base.Note(verb, err, true)
	}
}

// SetAside blocks a lane whose jobs cannot be found, until the store is opened again.
func (tx *Tx) SetAside(q *memory.Queue, verb string, err error) {
	if !q.Damaged {
		q.Damaged = true
		tx.Mem.Damages++
		tx.Base.Log.Error("jobs of a lane on a damaged page of the database, blocking the lane",
			"topic", q.Name.Topic, "lane", q.Name.Lane, "during", verb, "err", err)
	}
	tx.Base.Note(verb, err, true)
	tx.Touch(q)
	q.Head, q.HeadKnown = memory.NoHead, true
	tx.ToPlan = append(tx.ToPlan, q)
}

// UnlessDamaged does what deliveries can do without. When a damaged page keeps it from being done, missing notes that, and
// it is left undone until the store is opened again: the transaction, which fails with the error, is run again without it.
func (tx *Tx) UnlessDamaged(missing *bool, verb string, do func() error) error {
	if *missing {
		return nil
	}
	err := do()
	if db.IsDamage(err) {
		*missing = true
		tx.Mem.Damages++
		tx.Base.Log.Error("damaged page of the database, skipping a task", "task", verb, "err", err)
		tx.Base.Note(verb, err, true)
	}
	return err
}
