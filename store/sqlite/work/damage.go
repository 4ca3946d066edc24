package work

import (
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
)

// SkipJob skips a job that cannot be read, or written, until the store is opened again.
func (u *Unit) SkipJob(q *memory.Queue, n int64, verb string, err error) {
	if !u.Mem.Unreadable[n] {
		u.Mem.Unreadable[n] = true
		u.Mem.Damages++
		u.Env.Log.Error("job on a damaged page of the database, skipping it",
			"topic", q.Name.Topic, "lane", q.Name.Lane, "number", n, "during", verb, "err", err)
	}
	if db.IsError(err) {
		u.Env.Note(verb, err, true)
	}
}

// BlockQueue blocks a lane whose jobs cannot be found, until the store is opened again.
func (u *Unit) BlockQueue(q *memory.Queue, verb string, err error) {
	if !q.Damaged {
		q.Damaged = true
		u.Mem.Damages++
		u.Env.Log.Error("jobs of a lane on a damaged page of the database, blocking the lane",
			"topic", q.Name.Topic, "lane", q.Name.Lane, "during", verb, "err", err)
	}
	u.Env.Note(verb, err, true)
	u.Touch(q)
	q.Head, q.HeadKnown = memory.NoHead, true
	u.Plan(q)
}

// UnlessDamaged does what deliveries can do without. When a damaged page keeps it from being done, missing notes that,
// and it is left undone until the store is opened again: the transaction, which fails with the error, is run again
// without it.
func (u *Unit) UnlessDamaged(missing *bool, verb string, do func() error) error {
	if *missing {
		return nil
	}
	err := do()
	if db.IsDamage(err) {
		*missing = true
		u.Mem.Damages++
		u.Env.Log.Error("damaged page of the database, skipping a task", "task", verb, "err", err)
		u.Env.Note(verb, err, true)
	}
	return err
}

// AbandonLease ends the lease of a job whose attempt can neither be recorded nor ended. In the database the job waits
// again; claims skip it.
func (u *Unit) AbandonLease(h *memory.Lease, verb string) {
	if u.Mem.Leases[h.Ref] != h {
		return
	}
	u.SkipJob(h.Queue, h.N, verb, db.ErrDamaged)
	u.EndLease(h)
	q := h.Queue
	q.Waiting++
	q.Topic.Waiting++
	q.HeadKnown = false
}
