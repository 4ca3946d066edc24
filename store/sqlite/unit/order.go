package unit

import (
	"database/sql/driver"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// The jobs of an ordered queue are numbered in the order of their registration. Their column ordered is 0 once their
// first due time has come, and stays so until they end: the first of these is the next to be claimed, and the others
// wait for it. Its index has them by number, and the others by first due time. The column is not known of jobs that
// came while the queue was not ordered. They get it before anything is claimed, a part at a time.

// orderBatch bounds the jobs that are put in order, or take their turn, at a time.
const orderBatch = 1024

// Turn returns the column ordered of a job of a queue.
func (u *Unit) Turn(q *memory.Queue, firstDue int64) driver.Value {
	switch {
	case !q.Limits().Ordered:
		return nil
	case firstDue <= u.Now.Millis:
		return int64(0)
	default:
		return firstDue
	}
}

// addOrdered is AddWaiting for an ordered queue.
func (u *Unit) addOrdered(q *memory.Queue, k table.Key) {
	u.Touch(q)
	behind := q.HeadKnown && q.Due(u.Now) && q.Head.N < k.N
	q.HeadKnown = behind
	q.Waiting++
	q.Topic.Waiting++
	if !q.Mark.Before(k) {
		q.Ready++
		q.Topic.Ready++
	}
	if k.Due <= u.Now.Millis && !behind {
		u.Notify(q)
	}
}

// firstInTurn returns the key of the job of an ordered queue whose turn it is, if that is due. It sets the queue's
// head.
func (u *Unit) firstInTurn(q *memory.Queue) (keys []table.Key, err error) {
	head, err := u.findTurn(q)
	if err != nil {
		return nil, err
	}
	u.Touch(q)
	q.Head, q.HeadKnown = head, true
	if head.Due <= u.Now.Millis {
		keys = append(keys, head)
	}
	return keys, nil
}

// findTurn returns the head of an ordered queue.
func (u *Unit) findTurn(q *memory.Queue) (head table.Key, err error) {
	soon := table.Key{Due: u.Now.Millis + 1}
	if done, err := u.putInOrder(q); err != nil || !done {
		return soon, err
	}
	taken, err := u.Change(table.TakeTurn, q.Id, u.Now.Millis, int64(orderBatch))
	if err != nil || taken == orderBatch {
		return soon, err
	}
	head = memory.NoHead
	read := func(v []driver.Value) error {
		k := table.Key{Due: db.Int(v[0]), N: db.Int(v[1])}
		if u.Mem.IsLeased(k.N) {
			return nil
		}
		if k.Due < head.Due {
			head = k
		}
		return db.ErrStop
	}
	err = u.Query(table.FirstInTurn, read, q.Id)
	if err == nil && head.Due > u.Now.Millis {
		err = u.Query(table.NextTurn, read, q.Id)
	}
	return head, err
}

// putInOrder sets the column ordered of some jobs, and reports whether it is known of all.
func (u *Unit) putInOrder(q *memory.Queue) (done bool, err error) {
	if q.Order.Done {
		return true, nil
	}
	type unordered struct{ n, firstDue int64 }
	var jobs []unordered
	count, last := 0, q.Order.After
	err = u.Query(table.Unordered, func(v []driver.Value) error {
		count++
		last = table.Key{Due: db.Int(v[0]), N: db.Int(v[1])}
		if db.Int(v[3]) != 0 {
			jobs = append(jobs, unordered{last.N, db.Int(v[2])})
		}
		return nil
	}, q.Id, last.Due, last.N, int64(orderBatch))
	if err != nil {
		return false, err
	}
	for _, j := range jobs {
		if err := u.Exec(table.SetOrder, u.Turn(q, j.firstDue), j.n); err != nil {
			return false, err
		}
	}
	u.Touch(q)
	q.Order = memory.Order{On: true, Done: count < orderBatch, After: last}
	return q.Order.Done, nil
}

// Moved adds a job whose due time has changed to those that wait. If the jobs of its queue are being put in order,
// which is by due time, that begins anew: it may have passed the job's place.
func (u *Unit) Moved(q *memory.Queue, k table.Key) error {
	if !q.Order.Done {
		u.Touch(q)
		q.Order.After = table.Key{}
	}
	return u.AddWaiting(q, k)
}

// FirstDue returns the waiting job of a queue that was due first; memory.NoHead: there is none.
func (u *Unit) FirstDue(q *memory.Queue) (first table.Key, err error) {
	if !q.Limits().Ordered {
		err = u.LoadHead(q)
		return q.Head, err
	}
	first = memory.NoHead
	err = u.Query(table.FirstWaiting, func(v []driver.Value) error {
		if n := db.Int(v[1]); !u.Mem.IsLeased(n) {
			first = table.Key{Due: db.Int(v[0]), N: n}
			return db.ErrStop
		}
		return nil
	}, q.Id, int64(0), int64(0))
	return first, err
}

// NextInTurn returns the job of an ordered queue that is leased, or else the one whose turn it is.
func (u *Unit) NextInTurn(q *memory.Queue) (next job.Ref, err error) {
	if !q.Limits().Ordered {
		return job.Ref{}, nil
	}
	if q.Running > 0 {
		var leased *memory.Lease
		for _, h := range u.Mem.LeaseByNumber {
			if h.Queue == q && (leased == nil || h.N < leased.N) {
				leased = h
			}
		}
		if leased != nil {
			return leased.Ref, nil
		}
	}
	number := int64(0)
	err = u.Query(table.FirstInTurn, func(v []driver.Value) error {
		if n := db.Int(v[1]); !u.Mem.IsLeased(n) {
			number = n
			return db.ErrStop
		}
		return nil
	}, q.Id)
	if err != nil || number == 0 {
		return job.Ref{}, err
	}
	err = u.Query(table.JobWithoutBodyByN, func(v []driver.Value) error {
		cells := table.Cells(v)
		next = cells.Row().Ref()
		return nil
	}, number)
	return next, err
}
