package sqlite

import (
	"database/sql/driver"

	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// followClock moves delayed jobs after a step of the wall clock, those of one span of numbers.
func (r *round) followClock() error {
	c := &r.Mem.Steps
	after, last, ok := c.Span()
	if !ok {
		return nil
	}
	type delayed struct{ n, q, due int64 }
	var jobs []delayed
	if err := r.Query(table.Stepped, func(v []driver.Value) error {
		jobs = append(jobs, delayed{db.Int(v[0]), db.Int(v[1]), db.Int(v[2])})
		return nil
	}, last, after); err != nil {
		return err
	}
	for _, j := range jobs {
		d := c.Shift(j.n)
		q := r.Mem.ByID[j.q]
		if d == 0 || q == nil || r.Mem.IsLeased(j.n) {
			continue
		}
		if err := r.Exec(table.StepJob, d, j.n); err != nil {
			return err
		}
		r.RemoveWaiting(q, table.Key{Due: j.due, N: j.n})
		if err := r.Moved(q, table.Key{Due: j.due + d, N: j.n}); err != nil {
			return err
		}
		r.MayBeNewHead = true
	}
	undo, more := c.Advance()
	r.OnUndo(undo)
	r.more = r.more || more
	return nil
}
