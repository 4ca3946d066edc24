package unit

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
func (u *Unit) dirty(b *memory.Batch) {
	if b.SavedIn != u.Serial {
		b.SavedIn = u.Serial
		u.batches = append(u.batches, b)
	}
}

// AddLease adds a lease, in a batch of this transaction.
func (u *Unit) AddLease(h *memory.Lease) {
	if u.open == nil || len(u.open.Jobs) == memory.BatchJobs {
		u.Mem.LastBatch++
		u.open = &memory.Batch{Number: u.Mem.LastBatch, Claimed: u.Now.Millis}
	}
	h.Batch = u.open
	u.dirty(h.Batch)
	u.Mem.AddLease(h)
	u.newLeases = append(u.newLeases, h)
	u.OnUndo(func() { u.Mem.RemoveLease(h) })
}

func (u *Unit) removeLease(h *memory.Lease) {
	if h.Batch == nil {
		return // an earlier process had it
	}
	u.dirty(h.Batch)
	u.Mem.RemoveLease(h)
	u.endedLeases = append(u.endedLeases, h)
	u.OnUndo(func() { u.Mem.AddLease(h) })
}

// ExtendLease has a lease end a time from now, unless it ends later already. Deadlines are only in memory.
func (u *Unit) ExtendLease(h *memory.Lease, extension time.Duration) {
	deadline := u.Now.Mono + (u.Now.After(extension)-u.Now.Millis)*int64(time.Millisecond)
	if deadline <= h.Deadline {
		return
	}
	Save(u, &h.Deadline)
	h.Deadline = deadline
	u.extendedLeases = append(u.extendedLeases, h)
}

// flushLeases writes the batches that changed.
func (u *Unit) flushLeases() error {
	for _, b := range u.batches {
		stored := len(b.Jobs) > 0
		switch {
		case stored:
			if err := u.Exec(table.InsertLeases, b.Number, b.Claimed, b.Encode()); err != nil {
				return err
			}
		case b.Stored:
			if err := u.Exec(table.DeleteLeases, b.Number); err != nil {
				return err
			}
		}
		if b.Stored != stored {
			Save(u, &b.Stored)
			b.Stored = stored
		}
	}
	return nil
}

// ExpireLease ends an attempt without a settlement: the job is due again at once, or cancelled when that was requested.
func (u *Unit) ExpireLease(h *memory.Lease, lasted time.Duration) error {
	to := h.Progress
	to.ConsecutiveLost++
	if to.ConsecutiveLost > policy.FreeLosses {
		to.FailedAttempts++
	}
	entry := job.Attempt{
		N: int(to.Attempts) + 1, Kind: job.KindLost, StartedAt: clock.Time(h.Claimed), Duration: lasted,
		Process: string(h.Token.Owner()),
	}
	if err := u.Record(h.N, &to, entry.Kind, string(entry.JSON())); err != nil {
		return err
	}
	if h.Cancel {
		return u.FinishLeased(h, to, job.Cancelled, job.ReasonCancelled)
	}
	return u.Reschedule(h, to, u.Now.Millis)
}

// EndLease ends a lease, and sends a wake-up when that frees a slot of a lane at its limit.
func (u *Unit) EndLease(h *memory.Lease) {
	q := h.Queue
	u.Touch(q)
	if q.Blocked(u.Now) && q.Waiting > 0 {
		u.Notify(q)
	}
	q.Running--
	q.Topic.Running--
	u.MayBeNewHead = true // a lane that is freed may have the next job of all
	u.removeLease(h)
}

// Reschedule makes a leased job due again.
func (u *Unit) Reschedule(h *memory.Lease, to table.Progress, due int64) error {
	if err := u.Exec(table.MoveJob, due, to.Attempts, to.FailedAttempts, to.ConsecutiveLost, db.NullEmpty(to.Answer),
		to.Entries, db.NullZero(to.First), h.N); err != nil {
		return err
	}
	u.Mem.Steps.SetDelayed(h.N, false)
	u.EndLease(h)
	return u.Moved(h.Queue, table.Key{Due: due, N: h.N})
}

// FinishLeased ends a lease and finishes its job.
func (u *Unit) FinishLeased(h *memory.Lease, to table.Progress, state job.State, reason policy.Reason) error {
	u.EndLease(h)
	return u.Finish(h.Queue, h.Ref, h.N, to, state, reason)
}
