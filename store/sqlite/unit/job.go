package unit

import (
	"database/sql/driver"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// Find reads a job, with its body or without. It fails with store.ErrNotFound. A job that cannot be decoded is a
// db.Error, so that the call which needs it changes nothing.
func (u *Unit) Find(ref job.Ref, withBody bool) (*table.Row, error) {
	r, err := u.FindRow(ref, withBody)
	if err != nil {
		return nil, err
	}
	if err := r.Decode(); err != nil {
		return nil, db.NewError(table.Unreadable(err))
	}
	return r, nil
}

// FindRow is Find without decoding what the job asks for.
func (u *Unit) FindRow(ref job.Ref, withBody bool) (found *table.Row, err error) {
	which := table.FindJobWithoutBody
	if withBody {
		which = table.FindJob
	}
	err = u.Query(which, func(v []driver.Value) error {
		c := table.Cells(v)
		found = c.Row()
		c.Names(found)
		if withBody {
			c.Body(found)
		}
		u.overlay(found)
		return nil
	}, ref.ID, ref.Namespace)
	if err == nil && found == nil {
		err = store.ErrNotFound
	}
	return found, err
}

// overlay sets the state of a leased job to running: its row is not changed by a claim.
func (u *Unit) overlay(r *table.Row) {
	if u.Mem.LeaseByNumber[r.N] != nil {
		r.State = job.Running
	}
}

// Remove deletes an ended job, and remembers a client's id for as long as it must stay known.
func (u *Unit) Remove(
	q *memory.Queue, ref job.Ref, n int64, to table.Progress, state job.State, reason policy.Reason, finished int64,
) error {
	if err := u.Erase(q, n, to); err != nil {
		return err
	}
	if finished+q.Topic.Limits.IDWindow.Milliseconds() <= u.Now.Millis {
		return nil
	}
	return u.RememberID(q.Topic, ref, to, state, reason, finished)
}

// Erase deletes a job with all that belongs to it.
func (u *Unit) Erase(q *memory.Queue, n int64, to table.Progress) error {
	if err := u.Exec(table.DeleteJob, n); err != nil {
		return err
	}
	if to.BodySize > table.InlineBody {
		if err := u.WithoutOverwriting(func() error { return u.Exec(table.DeleteBody, n) }); err != nil {
			return err
		}
	}
	others := to.Entries
	if to.First != 0 {
		others--
		if err := u.Exec(table.DeleteFirstAttempt, to.First); err != nil {
			return err
		}
	}
	if others > 0 {
		if err := u.Exec(table.DeleteAttempts, n); err != nil {
			return err
		}
	}
	u.Touch(q)
	q.Rows--
	return nil
}

// RememberID keeps the id of a job that is gone known, if a client has chosen it, until Sweep finds that it was long
// enough.
func (u *Unit) RememberID(
	t *memory.Topic, ref job.Ref, to table.Progress, state job.State, reason policy.Reason, finished int64,
) error {
	if to.Fingerprint == nil {
		return nil
	}
	if err := u.Exec(table.InsertID, ref.Namespace, ref.ID, t.Id, to.Fingerprint, string(state), finished,
		db.NullEmpty(string(reason))); err != nil {
		return err
	}
	if t.Ids == 0 || finished < t.OldestID {
		t.OldestID = finished
	}
	t.Ids++
	u.Mem.Ids++
	return nil
}

// ReplaceBody stores another body of a job of a queue, which is not nil. The job's row must be written after it.
func (u *Unit) ReplaceBody(q *memory.Queue, n int64, to *table.Progress, body []byte) error {
	before, size := to.BodySize, int64(len(body))
	u.TouchTopic(q.Topic)
	q.Topic.Bytes += size - max(before, 0)
	to.Size += size - max(before, 0)
	to.BodySize = size
	if size <= table.InlineBody {
		if err := u.Exec(table.ReplaceBody, size, body, n); err != nil {
			return err
		}
		if before > table.InlineBody {
			return u.Exec(table.DeleteBody, n)
		}
		return nil
	}
	if err := u.Exec(table.ReplaceBody, size, nil, n); err != nil {
		return err
	}
	return u.Exec(table.InsertBody, n, body)
}

// EncodeOutbox returns the stored forms of new jobs.
func EncodeOutbox(outbox []store.NewJob) (encoded [][]byte) {
	for i := range outbox {
		encoded = append(encoded, store.AppendNewJob(nil, &outbox[i]))
	}
	return encoded
}

// Enqueue puts new jobs, with their stored forms, into the outbox and wakes the carrier.
func (u *Unit) Enqueue(outbox []store.NewJob, encoded [][]byte) error {
	for i, e := range outbox {
		added, err := u.Change(table.InsertOutbox, e.Namespace, e.ID, encoded[i])
		if err != nil {
			return err
		}
		u.Mem.Outbox += added
		u.wake = true
	}
	return nil
}

// Record adds an attempt to a job's record, and counts it if it counts. The job's row must be written after it.
func (u *Unit) Record(n int64, to *table.Progress, kind job.AttemptKind, entry string) error {
	slot := table.ReleaseSlots + to.Releases()%job.MaxAttempts
	if kind.Counts() {
		slot = to.Attempts % job.MaxAttempts
		to.Attempts++
	}
	return u.record(n, to, slot, entry)
}

// RecordEvent adds an event to a job's record, and increments the job's version. The job's row must be written after
// it.
func (u *Unit) RecordEvent(n int64, to *table.Progress, event job.Event) error {
	slot := table.EventSlots + to.Events()%job.MaxEvents
	to.Version++
	return u.record(n, to, slot, string(event.JSON()))
}

// record adds an entry to a job's record. The slot is that of the oldest entry of its sort if there is one too many.
func (u *Unit) record(n int64, to *table.Progress, slot int64, entry string) error {
	seq := to.Entries
	to.Entries++
	if seq == 0 {
		u.Mem.LastFirstAttempt++
		to.First = u.Mem.LastFirstAttempt
		return u.Exec(table.InsertFirstAttempt, to.First, n, entry)
	}
	return u.Exec(table.InsertAttempt, n, slot, seq, entry)
}

// Finish finishes a job that is counted nowhere any more.
func (u *Unit) Finish(
	q *memory.Queue, ref job.Ref, n int64, to table.Progress, state job.State, reason policy.Reason,
) error {
	u.Touch(q)
	u.Mem.Steps.SetDelayed(n, false)
	t := q.Topic
	t.Bytes -= to.Size
	t.Count(state, 1)
	kept, keep := t.Retained(state)
	if *keep.For <= 0 || *keep.Max <= 0 {
		return u.Remove(q, ref, n, to, state, reason, u.Now.Millis)
	}
	err := u.Exec(table.EndJob, string(state), u.Now.Millis, db.NullEmpty(string(reason)), to.Attempts,
		to.FailedAttempts, to.ConsecutiveLost, db.NullEmpty(to.Answer), to.Entries, db.NullZero(to.First),
		to.Version, n)
	if err != nil {
		return err
	}
	if kept.Jobs == 0 || u.Now.Millis < kept.Oldest {
		kept.Oldest = u.Now.Millis
	}
	kept.Jobs++
	kept.Bytes += to.Size
	return nil
}
