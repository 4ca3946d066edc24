package sqlite

import (
	"database/sql/driver"

	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// loadHead makes sure that head is known. It reads past leased jobs, of which a lane has no more than its limit.
func (tx *tx) loadHead(q *queue) error {
	if q.headKnown || q.damaged {
		return nil
	}
	tx.touch(q)
	head, from := noHead, q.head
	err := tx.Query(table.FirstWaiting, func(v []driver.Value) error {
		k := table.Key{Due: db.Int(v[0]), N: db.Int(v[1])}
		if tx.mem.isSkipped(k.N) {
			return nil
		}
		head = k
		return db.ErrStop
	}, q.id, from.Due, from.N) // the one before has left, or there was none: nothing comes before it
	if db.IsDamage(err) {
		tx.setAside(q, "look for the first job of a lane", err)
		return nil
	}
	if q.headKnown = err == nil; q.headKnown {
		q.head = head
	}
	return err
}

// due reports whether a job waits whose moment has come; head must be known.
func (q *queue) due(now clock.Instant) bool { return q.waiting > 0 && q.head.Due <= now.Millis }

// arrive counts a job that begins to wait, and sends a wake-up when it is due and the first that is. Where the head was not known
// it may be the job itself, which the database has already.
func (tx *tx) arrive(q *queue, k table.Key) error {
	if err := tx.loadHead(q); err != nil {
		return err
	}
	tx.touch(q)
	first := !q.due(tx.now) || q.head == k
	isDue := k.Due <= tx.now.Millis
	if q.waiting == 0 || k.Before(q.head) {
		q.head = k
	}
	if isDue && first && !q.blocked(tx.now) && q.mark.Before(k) {
		q.mark = k
	}
	q.waiting++
	q.topic.waiting++
	if !q.mark.Before(k) {
		q.ready++
		q.topic.ready++
	}
	if isDue && first {
		tx.notify(q)
	}
	return nil
}

// leave counts a job that waits no longer, other than by a claim.
func (tx *tx) leave(q *queue, k table.Key) {
	tx.touch(q)
	q.waiting--
	q.topic.waiting--
	if !q.mark.Before(k) {
		q.ready--
		q.topic.ready--
	}
	if q.headKnown && q.head == k {
		q.headKnown = q.waiting == 0
	}
}
