package txn

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// dirty notes a batch that is to be written.
func (tx *Tx) dirty(b *memory.Batch) {
	if b.SavedIn != tx.Serial {
		b.SavedIn = tx.Serial
		tx.batches = append(tx.batches, b)
	}
}

// AddLease adds a lease, in a batch of this transaction.
func (tx *Tx) AddLease(h *memory.Lease) {
	if tx.open == nil || len(tx.open.Jobs) == memory.BatchJobs {
		tx.Mem.LastBatch++
		tx.open = &memory.Batch{Number: tx.Mem.LastBatch, Claimed: tx.Now.Millis}
	}
	h.Batch = tx.open
	tx.dirty(h.Batch)
	tx.Mem.AddLease(h)
	tx.newLeases = append(tx.newLeases, h)
	tx.OnUndo(func() { tx.Mem.RemoveLease(h) })
}

func (tx *Tx) removeLease(h *memory.Lease) {
	if h.Batch == nil {
		return // an earlier process had it
	}
	tx.dirty(h.Batch)
	tx.Mem.RemoveLease(h)
	tx.endedLeases = append(tx.endedLeases, h)
	tx.OnUndo(func() { tx.Mem.AddLease(h) })
}

// flushLeases writes the batches that changed.
func (tx *Tx) flushLeases() error {
	for _, b := range tx.batches {
		stored := len(b.Jobs) > 0
		switch {
		case stored:
			if err := tx.Exec(table.InsertLeases, b.Number, b.Claimed, b.Encode()); err != nil {
				return err
			}
		case b.Stored:
			if err := tx.Exec(table.DeleteLeases, b.Number); err != nil {
				return err
			}
		}
		if b.Stored != stored {
			Save(tx, &b.Stored)
			b.Stored = stored
		}
	}
	return nil
}

// ExpireLease ends an attempt without a settlement: the job is due again at once, or cancelled when that was requested.
func (tx *Tx) ExpireLease(h *memory.Lease, lasted time.Duration) error {
	to := h.Progress
	to.ConsecutiveLost++
	if to.ConsecutiveLost > policy.FreeLosses {
		to.FailedAttempts++
	}
	entry := job.Attempt{N: int(to.Attempts) + 1, Kind: job.KindLost, StartedAt: clock.Time(h.Claimed), Duration: lasted}
	if err := tx.Record(h.N, &to, entry.Kind, string(entry.JSON())); err != nil {
		return err
	}
	if h.Cancel {
		return tx.FinishLeased(h, to, job.Cancelled, job.ReasonCancelled)
	}
	return tx.Reschedule(h, to, tx.Now.Millis)
}

// EndLease ends a lease, and sends a wake-up when that frees a slot of a lane at its limit.
func (tx *Tx) EndLease(h *memory.Lease) {
	q := h.Queue
	tx.Touch(q)
	if q.Blocked(tx.Now) && q.Waiting > 0 {
		tx.Notify(q)
	}
	q.Running--
	q.Topic.Running--
	tx.MayBeNewHead = true // a lane that is freed may have the next job of all
	tx.removeLease(h)
}

// Reschedule makes a leased job due again.
func (tx *Tx) Reschedule(h *memory.Lease, to table.Progress, due int64) error {
	if err := tx.Exec(table.MoveJob, due, to.Attempts, to.FailedAttempts, to.ConsecutiveLost, db.NullZero(to.Status), to.Entries, db.NullZero(to.First), h.N); err != nil {
		return err
	}
	tx.Mem.Steps.SetDelayed(h.N, false)
	tx.EndLease(h)
	return tx.Arrive(h.Queue, table.Key{Due: due, N: h.N})
}

// FinishLeased ends a lease and finishes its job.
func (tx *Tx) FinishLeased(h *memory.Lease, to table.Progress, state job.State, reason policy.Reason) error {
	tx.EndLease(h)
	return tx.Finish(h.Queue, h.Ref, h.N, to, state, reason)
}
