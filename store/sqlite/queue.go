package sqlite

import (
	"database/sql/driver"

	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// loadHead makes sure that head is known. It reads past leased jobs, of which a lane has no more than its limit.
func (tx *tx) loadHead(q *memory.Queue) error {
	if q.HeadKnown || q.Damaged {
		return nil
	}
	tx.touch(q)
	head, from := memory.NoHead, q.Head
	err := tx.Query(table.FirstWaiting, func(v []driver.Value) error {
		k := table.Key{Due: db.Int(v[0]), N: db.Int(v[1])}
		if tx.mem.IsSkipped(k.N) {
			return nil
		}
		head = k
		return db.ErrStop
	}, q.Id, from.Due, from.N) // the one before has left, or there was none: nothing comes before it
	if db.IsDamage(err) {
		tx.setAside(q, "look for the first job of a lane", err)
		return nil
	}
	if q.HeadKnown = err == nil; q.HeadKnown {
		q.Head = head
	}
	return err
}

// arrive counts a job that begins to wait, and sends a wake-up when it is due and the first that is. Where the head was not known
// it may be the job itself, which the database has already.
func (tx *tx) arrive(q *memory.Queue, k table.Key) error {
	if err := tx.loadHead(q); err != nil {
		return err
	}
	tx.touch(q)
	first := !q.Due(tx.now) || q.Head == k
	isDue := k.Due <= tx.now.Millis
	if q.Waiting == 0 || k.Before(q.Head) {
		q.Head = k
	}
	if isDue && first && !q.Blocked(tx.now) && q.Mark.Before(k) {
		q.Mark = k
	}
	q.Waiting++
	q.Topic.Waiting++
	if !q.Mark.Before(k) {
		q.Ready++
		q.Topic.Ready++
	}
	if isDue && first {
		tx.notify(q)
	}
	return nil
}

// leave counts a job that waits no longer, other than by a claim.
func (tx *tx) leave(q *memory.Queue, k table.Key) {
	tx.touch(q)
	q.Waiting--
	q.Topic.Waiting--
	if !q.Mark.Before(k) {
		q.Ready--
		q.Topic.Ready--
	}
	if q.HeadKnown && q.Head == k {
		q.HeadKnown = q.Waiting == 0
	}
}
