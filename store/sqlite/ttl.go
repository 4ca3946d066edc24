package sqlite

import (
	"context"
	"database/sql/driver"
	"math"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// ClaimExpired implements store.Shard.
func (s *Store) ClaimExpired(
	ctx context.Context, token store.Token, request store.ClaimExpiredRequest,
) ([]store.ClaimedJob, error) {
	bound("jobs to claim", request.Max)
	c := &claim{
		token: token, request: store.ClaimRequest{Max: request.Max, MaxBytes: request.MaxBytes, Margin: request.Lease},
		kind: "expired", fill: (*claim).takeExpired,
	}
	err := s.db.Submit(ctx, &op{
		Verb: "claim expired jobs", Weight: request.Max, Run: c.run,
		Gone: func() error { return db.ContextError(ctx) },
	})
	if err != nil {
		return nil, err
	}
	return c.answer(s).Jobs, nil
}

// takeExpired claims jobs that wait beyond their time to live.
func (c *claim) takeExpired(tx *tx) error {
	return tx.UnlessDamaged(&tx.Mem.NoTTL, "claim expired jobs", func() error { return c.takeOverdue(tx) })
}

func (c *claim) takeOverdue(tx *tx) error {
	if expired, err := tx.anyExpired(); err != nil || !expired {
		return err
	}
	err := tx.Query(table.Overdue, func(v []driver.Value) error {
		cells := table.Cells(v)
		r := cells.Row()
		cells.Names(r)
		cells.Body(r)
		if tx.Mem.IsSkipped(r.N) {
			return nil
		}
		body := int(max(0, r.BodySize))
		if len(c.rows) == c.request.Max || len(c.rows) > 0 && c.size+body > c.request.MaxBytes {
			return db.ErrStop
		}
		c.size += body
		c.rows = append(c.rows, r)
		return nil
	}, tx.Now.Millis)
	if err != nil {
		return err
	}
	for _, r := range c.rows {
		q, err := tx.LoadQueue(r.Queue)
		if err != nil {
			return err
		}
		tx.PruneThrottle(q)
		tx.Leave(q, r.Key())
		q.Running++
		q.Topic.Running++
		c.reply.leases = append(c.reply.leases, c.lease(tx, q, r, c.request.Margin))
		if expires := clock.Millis(r.ExpiresAt); expires == 0 || expires >= tx.Now.Millis { // its MaxAge counts once
			if err := tx.Exec(table.UpdateTTL, db.NullZero(expires), r.N); err != nil {
				return err
			}
		}
	}
	return nil
}

// anyExpired reports whether the time to live of an unfinished job is over.
func (tx *tx) anyExpired() (bool, error) {
	if tx.Mem.NextTTL >= tx.Now.Millis {
		return false, nil
	}
	next := int64(math.MaxInt64)
	err := tx.Query(table.FirstTTL, func(v []driver.Value) error {
		if v[0] != nil {
			next = db.Int(v[0])
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	tx.Mem.NextTTL = next
	return next < tx.Now.Millis, nil
}
