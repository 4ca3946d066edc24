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
	var rows [][]driver.Value
	if err := tx.Query(table.Stepped, func(v []driver.Value) error {
		rows = append(rows, v)
		return nil
	}, last, after); err != nil {
		return false, err
	}
	for _, v := range rows {
		n, due := db.Int(v[0]), db.Int(v[2])
		d := c.Shift(n)
		q := tx.Mem.ByID[db.Int(v[1])]
		if d == 0 || q == nil || tx.Mem.IsSkipped(n) {
			continue
		}
		if err := tx.Exec(table.StepJob, d, d, d, n); err != nil {
			return false, err
		}
		tx.Leave(q, table.Key{Due: due, N: n})
		if err := tx.Arrive(q, table.Key{Due: due + d, N: n}); err != nil {
			return false, err
		}
		tx.MayBeNewHead = true
	}
	undo, more := c.Advance()
	tx.OnUndo(undo)
	return more, nil
}
