package sqlite

import (
	"database/sql/driver"

	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// followClock moves delayed jobs after a step of the wall clock, those of one span of numbers. more reports that others
// follow.
func (tx *tx) followClock() (more bool, err error) {
	c := &tx.Mem.Steps
	after, last, ok := c.Span()
	if !ok {
		return false, nil
	}
	type delayed struct{ n, q, due int64 }
	var jobs []delayed
	if err := tx.Query(table.Stepped, func(v []driver.Value) error {
		jobs = append(jobs, delayed{db.Int(v[0]), db.Int(v[1]), db.Int(v[2])})
		return nil
	}, last, after); err != nil {
		return false, err
	}
	for _, j := range jobs {
		d := c.Shift(j.n)
		q := tx.Mem.ByID[j.q]
		if d == 0 || q == nil || tx.Mem.IsSkipped(j.n) {
			continue
		}
		if err := tx.Exec(table.StepJob, d, d, d, j.n); err != nil {
			return false, err
		}
		tx.Leave(q, table.Key{Due: j.due, N: j.n})
		if err := tx.Arrive(q, table.Key{Due: j.due + d, N: j.n}); err != nil {
			return false, err
		}
		tx.MayBeNewHead = true
	}
	undo, more := c.Advance()
	tx.OnUndo(undo)
	return more, nil
}
