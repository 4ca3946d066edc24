package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"strconv"

	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// A batch is a row of the table leases: jobs that were claimed together. A job's own row does not change when it is claimed,
// nor any index: a claim writes a row for all its jobs, a settlement writes the rows again that its jobs were in, so that
// both touch few pages, wherever the jobs lie.
type batch struct {
	number  int64
	claimed int64 // by the wall clock
	jobs    []*lease
	marks   []mark // what Open read of them
	stored  bool   // as the database has it at the end of the last transaction
	savedIn uint64 // the transaction that changed it last
}

// batchJobs bounds a batch: a settlement of one job writes all that is left of it.
const batchJobs = 128

// add and drop keep a lease's index in its batch, whose order has no meaning.
func (b *batch) add(h *lease) {
	h.index = len(b.jobs)
	b.jobs = append(b.jobs, h)
}

func (b *batch) drop(h *lease) {
	last := len(b.jobs) - 1
	b.jobs[h.index] = b.jobs[last]
	b.jobs[h.index].index = h.index
	b.jobs[last] = nil
	b.jobs = b.jobs[:last]
}

// dirty notes a batch that is to be written.
func (tx *tx) dirty(b *batch) {
	if b.savedIn != tx.serial {
		b.savedIn = tx.serial
		tx.batches = append(tx.batches, b)
	}
}

// addLease and removeLease keep the leases in memory.
func (tx *tx) addLease(h *lease) {
	if tx.open == nil || len(tx.open.jobs) == batchJobs {
		tx.mem.lastBatch++
		tx.open = &batch{number: tx.mem.lastBatch, claimed: tx.now.Millis}
	}
	h.batch = tx.open
	tx.dirty(h.batch)
	tx.mem.addLease(h)
	tx.newLeases = append(tx.newLeases, h)
	tx.undo(func() { tx.mem.removeLease(h) })
}

func (tx *tx) removeLease(h *lease) {
	if h.batch == nil {
		return // an earlier process had it
	}
	tx.dirty(h.batch)
	tx.mem.removeLease(h)
	tx.endedLeases = append(tx.endedLeases, h)
	tx.undo(func() { tx.mem.addLease(h) })
}

func (m *memory) addLease(h *lease) {
	m.leases[h.ref], m.leaseByNumber[h.n] = h, h
	h.batch.add(h)
	h.queue.owners.add(h.token.Owner(), 1)
}

func (m *memory) removeLease(h *lease) {
	delete(m.leases, h.ref)
	delete(m.leaseByNumber, h.n)
	h.batch.drop(h)
	h.queue.owners.add(h.token.Owner(), -1)
}

// flushLeases writes the batches that changed.
func (tx *tx) flushLeases() error {
	for _, b := range tx.batches {
		stored := len(b.jobs) > 0
		switch {
		case stored:
			if err := tx.Exec(table.InsertLeases, b.number, b.claimed, b.encode()); err != nil {
				return err
			}
		case b.stored:
			if err := tx.Exec(table.DeleteLeases, b.number); err != nil {
				return err
			}
		}
		if b.stored != stored {
			save(tx, &b.stored)
			b.stored = stored
		}
	}
	return nil
}

// A mark is one job in a row of the table leases: its lane and its number.
type mark struct{ q, n int64 }

// encode is the column: a list of marks, as JSON. The number of a job is between a comma and a bracket (isLeased).
func (b *batch) encode() string {
	text := make([]byte, 0, 24*len(b.jobs)+2)
	text = append(text, '[')
	for i, h := range b.jobs {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, '[')
		text = strconv.AppendInt(text, h.queue.id, 10)
		text = append(text, ',')
		text = strconv.AppendInt(text, h.n, 10)
		text = append(text, ']')
	}
	return string(append(text, ']'))
}

func parseMarks(column string) ([]mark, error) {
	var raw [][2]int64
	if err := json.Unmarshal([]byte(column), &raw); err != nil {
		return nil, err
	}
	marks := make([]mark, len(raw))
	for i, r := range raw {
		marks[i] = mark{q: r[0], n: r[1]}
	}
	return marks, nil
}

// readRunning reads the leased jobs of a connection's snapshot, by number.
func readRunning(ctx context.Context, c *db.Conn) (map[int64]mark, error) {
	running := make(map[int64]mark)
	err := c.Query(ctx, table.ReadLeases, func(v []driver.Value) error {
		marks, _ := parseMarks(db.Text(v[2])) // Open complains of what cannot be read
		for _, m := range marks {
			running[m.n] = m
		}
		return nil
	})
	return running, err
}
