package db

import (
	"context"
	"fmt"
)

// VacuumPages is how many free pages Vacuum gives back to the file system at once.
const VacuumPages = 512

// Vacuum has the writer give some free pages back to the file system, if they are an eighth of the file or more. It
// reports whether there are more of them.
func (d *DB) Vacuum(ctx context.Context) (more bool) {
	done := make(chan bool, 1)
	d.later(ctx, func() { done <- d.vacuum() })
	select {
	case more = <-done:
	case <-d.written:
	case <-ctx.Done():
	}
	return more
}

func (d *DB) vacuum() (more bool) {
	if d.conn == nil || d.broken || d.health.damage() != nil {
		return false
	}
	before, enough := d.freePages()
	if !enough {
		return false
	}
	// Each step frees one page, so the statement is read to its end.
	if err := d.conn.ints(shared, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", VacuumPages)); err != nil {
		d.noteWriterError("give free pages back", err)
		return false
	}
	d.countWritten(d.conn.written())
	after, enough := d.freePages()
	return enough && after < before
}

// freePages returns the number of free pages, and whether they are enough to be given back: fewer than an eighth of the
// file are soon used again.
func (d *DB) freePages() (free int64, enough bool) {
	var pages int64
	if err := d.conn.ints(shared, "SELECT * FROM pragma_freelist_count, pragma_page_count", &free, &pages); err != nil {
		d.note("count free pages", err, true)
		return 0, false
	}
	return free, free >= 2*VacuumPages && free >= pages/8
}
