package sqlite

import (
	"context"
	"database/sql/driver"
	"math"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// ClaimExpired implements store.Shard.
func (s *Store) ClaimExpired(
	ctx context.Context, token store.Token, request store.ClaimExpiredRequest,
) ([]store.ClaimedJob, error) {
	checkBatch("jobs to claim", request.Max)
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
func (c *claim) takeExpired(u *unit.Unit) error {
	if expired, err := anyExpired(u); err != nil || !expired {
		return err
	}
	err := u.Query(table.Overdue, func(v []driver.Value) error {
		cells := table.Cells(v)
		r := cells.Row()
		cells.Names(r)
		cells.Body(r)
		if u.Mem.IsLeased(r.N) {
			return nil
		}
		if c.read == c.request.Max || !c.fits(r) {
			return db.ErrStop
		}
		c.rows = append(c.rows, r)
		return nil
	}, u.Now.Millis)
	if err != nil {
		return err
	}
	for _, r := range c.rows {
		q, err := u.LoadQueue(r.Queue)
		if err != nil {
			return err
		}
		u.PruneThrottle(q)
		u.RemoveWaiting(q, r.Key())
		q.Running++
		q.Topic.Running++
		c.reply.leases = append(c.reply.leases, c.lease(u, q, r, c.request.Margin))
		if expires := clock.Millis(r.ExpiresAt); expires == 0 || expires >= u.Now.Millis { // its MaxAge counts once
			if err := u.Exec(table.UpdateTTL, db.NullZero(expires), r.N); err != nil {
				return err
			}
		}
	}
	return nil
}

// anyExpired reports whether the time to live of an unfinished job is over.
func anyExpired(u *unit.Unit) (bool, error) {
	if u.Mem.NextTTL >= u.Now.Millis {
		return false, nil
	}
	next := int64(math.MaxInt64)
	err := u.Query(table.FirstTTL, func(v []driver.Value) error {
		if v[0] != nil {
			next = db.Int(v[0])
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	u.Mem.NextTTL = next
	return next < u.Now.Millis, nil
}
