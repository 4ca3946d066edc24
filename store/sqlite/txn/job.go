package txn

import (
	"database/sql/driver"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// Find reads a job, with its body or without. It fails with store.ErrNotFound. A job that cannot be decoded is a db.Error, so
// that the call which needs it changes nothing.
func (tx *Tx) Find(ref job.Ref, withBody bool) (*table.Row, error) {
	r, err := tx.FindRow(ref, withBody)
	if err != nil {
		return nil, err
	}
	if err := r.Decode(); err != nil {
		return nil, db.NewError(table.Unreadable(err))
	}
	return r, nil
}

// FindRow is Find without decoding what the job asks for.
func (tx *Tx) FindRow(ref job.Ref, withBody bool) (found *table.Row, err error) {
	which := table.FindHead
	if withBody {
		which = table.FindJob
	}
	err = tx.Query(which, func(v []driver.Value) error {
		c := table.Cells(v)
		found = c.Row()
		c.Names(found)
		if withBody {
			c.Body(found)
		}
		tx.overlay(found)
		return nil
	}, ref.ID, ref.Namespace)
	if err == nil && found == nil {
		err = store.ErrNotFound
	}
	return found, err
}

// overlay sets the state of a leased job to running: its row is not changed by a claim.
func (tx *Tx) overlay(r *table.Row) {
	if tx.Mem.LeaseByNumber[r.N] != nil {
		r.State = job.Running
	}
}

// Remove deletes an ended job, and remembers a client's id for as long as it must stay known.
func (tx *Tx) Remove(
	q *memory.Queue, ref job.Ref, n int64, to table.Progress, state job.State, reason policy.Reason, finished int64,
) error {
	if err := tx.Erase(q, n, to); err != nil {
		return err
	}
	if finished+q.Topic.Limits.IDWindow.Milliseconds() <= tx.Now.Millis {
		return nil
	}
	return tx.RememberID(q.Topic, ref, to, state, reason, finished)
}

// Erase deletes a job with all that belongs to it.
func (tx *Tx) Erase(q *memory.Queue, n int64, to table.Progress) error {
	if err := tx.Exec(table.DeleteJob, n); err != nil {
		return err
	}
	if to.BodySize > table.InlineBody {
		if err := tx.WithoutOverwriting(func() error { return tx.Exec(table.DeleteBody, n) }); err != nil {
			return err
		}
	}
	others := to.Entries
	if to.First != 0 {
		others--
		if err := tx.Exec(table.DeleteFirstAttempt, to.First); err != nil {
			return err
		}
	}
	if others > 0 {
		if err := tx.Exec(table.DeleteAttempts, n); err != nil {
			return err
		}
	}
	tx.Touch(q)
	q.Rows--
	return nil
}

// RememberID keeps the id of a job that is gone known, if a client has chosen it, until Sweep finds that it was long enough.
func (tx *Tx) RememberID(
	t *memory.Topic, ref job.Ref, to table.Progress, state job.State, reason policy.Reason, finished int64,
) error {
	if to.Fingerprint == nil {
		return nil
	}
	if err := tx.Exec(table.InsertID, ref.Namespace, ref.ID, t.Id, to.Fingerprint, string(state), finished, db.NullEmpty(string(reason))); err != nil {
		return err
	}
	if t.Ids == 0 || finished < t.OldestID {
		t.OldestID = finished
	}
	t.Ids++
	tx.Mem.Ids++
	return nil
}

// Enqueue puts new jobs into the outbox and wakes the carrier.
func (tx *Tx) Enqueue(outbox []store.NewJob, written [][]byte) error {
	for i, e := range outbox {
		added, err := tx.Change(table.InsertOutbox, e.Namespace, e.ID, written[i])
		if err != nil {
			return err
		}
		tx.Mem.Outbox += added
		tx.wake = true
	}
	return nil
}

// eventSlots is the first slot of a record for events that are no attempts.
const eventSlots = job.MaxAttempts

// Record adds to a job's record, and counts an attempt that was made. The slot is that of the entry of its sort which is one
// too many. The job's row must be written after it.
func (tx *Tx) Record(n int64, to *table.Progress, kind job.AttemptKind, entry string) error {
	seq, slot := to.Entries, eventSlots+(to.Entries-to.Attempts)%job.MaxEvents
	to.Entries++
	if kind.IsAttempt() {
		slot = to.Attempts % job.MaxAttempts
		to.Attempts++
	}
	if seq == 0 {
		tx.Mem.LastFirstAttempt++
		to.First = tx.Mem.LastFirstAttempt
		return tx.Exec(table.InsertFirstAttempt, to.First, n, entry)
	}
	return tx.Exec(table.InsertAttempt, n, slot, seq, entry)
}

// RecordEvent is Record for what a client did.
func (tx *Tx) RecordEvent(n int64, to *table.Progress, kind job.AttemptKind) error {
	entry := job.Attempt{N: int(to.Attempts), Kind: kind, StartedAt: clock.Time(tx.Now.Millis)}
	return tx.Record(n, to, kind, string(entry.JSON()))
}

// Finish finishes a job that is counted nowhere any more.
func (tx *Tx) Finish(q *memory.Queue, ref job.Ref, n int64, to table.Progress, state job.State, reason policy.Reason) error {
	tx.Touch(q)
	tx.Mem.Steps.SetDelayed(n, false)
	t := q.Topic
	t.Count(state, 1)
	kept, keep := t.Retained(state)
	if *keep.For <= 0 || *keep.Max <= 0 {
		return tx.Remove(q, ref, n, to, state, reason, tx.Now.Millis)
	}
	err := tx.Exec(table.EndJob, string(state), tx.Now.Millis, db.NullEmpty(string(reason)), to.Attempts, to.FailedAttempts, to.ConsecutiveLost, db.NullZero(to.Status),
		to.Entries, db.NullZero(to.First), to.Version, n)
	if err != nil {
		return err
	}
	if kept.Jobs == 0 || tx.Now.Millis < kept.Oldest {
		kept.Oldest = tx.Now.Millis
	}
	kept.Jobs++
	kept.Bytes += to.Size
	return nil
}
