package sqlite

import (
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// dirty notes a batch that is to be written.
func (tx *tx) dirty(b *memory.Batch) {
	if b.SavedIn != tx.serial {
		b.SavedIn = tx.serial
		tx.batches = append(tx.batches, b)
	}
}

// addLease and removeLease keep the leases in memory.
func (tx *tx) addLease(h *memory.Lease) {
	if tx.open == nil || len(tx.open.Jobs) == memory.BatchJobs {
		tx.mem.LastBatch++
		tx.open = &memory.Batch{Number: tx.mem.LastBatch, Claimed: tx.now.Millis}
	}
	h.Batch = tx.open
	tx.dirty(h.Batch)
	tx.mem.AddLease(h)
	tx.newLeases = append(tx.newLeases, h)
	tx.undo(func() { tx.mem.RemoveLease(h) })
}

func (tx *tx) removeLease(h *memory.Lease) {
	if h.Batch == nil {
		return // an earlier process had it
	}
	tx.dirty(h.Batch)
	tx.mem.RemoveLease(h)
	tx.endedLeases = append(tx.endedLeases, h)
	tx.undo(func() { tx.mem.AddLease(h) })
}

// flushLeases writes the batches that changed.
func (tx *tx) flushLeases() error {
	for _, b := range tx.batches {
		stored := len(b.Jobs) > 0
		switch {
		case stored:
			if err := tx.Exec(table.InsertLeases, b.Number, b.Claimed, b.Encode()); err != nil {
				return err
			}
		case b.Stored:
			if err := tx.Exec(table.DeleteLeases, b.Number); err != nil {
				return err
			}
		}
		if b.Stored != stored {
			save(tx, &b.Stored)
			b.Stored = stored
		}
	}
	return nil
}
