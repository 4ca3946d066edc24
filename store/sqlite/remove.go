package sqlite

import (
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// remove deletes an ended job, and remembers a client's id for as long as it must stay known.
func (tx *tx) remove(
	q *memory.Queue, ref job.Ref, n int64, to table.Progress, state job.State, reason policy.Reason, finished int64,
) error {
	if err := tx.erase(q, n, to); err != nil {
		return err
	}
	if finished+q.Topic.Limits.IDWindow.Milliseconds() <= tx.now.Millis {
		return nil
	}
	return tx.rememberID(q.Topic, ref, to, state, reason, finished)
}

// erase deletes a job with all that belongs to it.
func (tx *tx) erase(q *memory.Queue, n int64, to table.Progress) error {
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
	tx.touch(q)
	q.Rows--
	return nil
}

// rememberID keeps the id of a job that is gone known, if a client has chosen it, until Sweep finds that it was long enough.
func (tx *tx) rememberID(
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
	tx.mem.Ids++
	return nil
}
