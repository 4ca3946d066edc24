package sqlite

import (
	"context"

	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
)

// A damaged page keeps back what is on it, and nothing else. A job whose row cannot be read is skipped; a lane with an unreadable
// part of its index is blocked. Both last until the store is opened again, and keep the store unready.

// abandon ends the lease of a job whose attempt can neither be recorded nor ended. In the database the job waits again; claims
// pass over it.
func (s *Store) abandon(ctx context.Context, h *memory.Lease, verb string) error {
	return s.db.Submit(ctx, &op{Verb: verb, Weight: 1, Run: func(tx *tx) error {
		if tx.Mem.Leases[h.Ref] != h {
			return nil
		}
		tx.SkipJob(h.Queue, h.N, verb, db.ErrDamaged)
		tx.EndLease(h)
		q := h.Queue
		q.Waiting++
		q.Topic.Waiting++
		q.HeadKnown = false
		return nil
	}})
}
