package sqlite

import (
	"context"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/txn"
)

// change makes one call that changes one job, and returns the job after it.
func (s *Store) change(
	ctx context.Context, verb string, c memory.Call, ref job.Ref, do func(*tx, *memory.Queue, *table.Row) error,
) (job.Job, error) {
	var answer job.Job
	err := s.db.Submit(ctx, &op{Verb: verb, Durable: true, Weight: 1, Run: func(tx *tx) (err error) {
		answer, err = once(tx, c, func(j job.Job) int { return 1024 + len(j.Body) }, func() (job.Job, error) {
			r, err := tx.Find(ref, true)
			if err != nil {
				return job.Job{}, err
			}
			q, err := tx.LoadQueue(r.Queue)
			if err != nil {
				return job.Job{}, err
			}
			tx.MayBeNewHead = true
			if err := do(tx, q, r); err != nil {
				return job.Job{}, err
			}
			return r.View(tx.Now), nil
		})
		return err
	}})
	if err != nil {
		return job.Job{}, err
	}
	return answer, nil
}

// Cancel implements store.Shard.
func (s *Store) Cancel(ctx context.Context, token store.Token, ref job.Ref) (job.Job, error) {
	return s.change(ctx, "cancel a job", memory.Call{Method: "cancel", Token: token}, ref, func(tx *tx, q *memory.Queue, r *table.Row) error {
		switch {
		case r.State == job.Delivered, r.State == job.Dead:
			return &store.StateError{State: r.State}
		case r.State == job.Cancelled, r.CancelRequested:
			return nil
		}
		to := r.Progress()
		to.Version++
		if err := tx.RecordEvent(r.N, &to, job.KindCancelled); err != nil {
			return err
		}
		r.Version = to.Version
		if r.State == job.Running {
			r.CancelRequested = true
			return tx.mark(ref, r.N, to)
		}
		tx.Leave(q, r.Key())
		r.State, r.Reason, r.FinishedAt = job.Cancelled, job.ReasonCancelled, clock.Time(tx.Now.Millis)
		return tx.Finish(q, ref, r.N, to, job.Cancelled, job.ReasonCancelled)
	})
}

// mark notes on a running job that it is to be cancelled.
func (tx *tx) mark(ref job.Ref, n int64, to table.Progress) error {
	if err := tx.Exec(table.MarkCancel, to.Version, to.Entries, db.NullZero(to.First), n); err != nil {
		return err
	}
	if h := tx.Mem.Leases[ref]; h != nil {
		txn.Save(&tx.Tx, &h.Progress)
		h.Version, h.Entries, h.First, h.Cancel = to.Version, to.Entries, to.First, true
	}
	return nil
}

// Replace implements store.Shard.
func (s *Store) Replace(ctx context.Context, token store.Token, ref job.Ref, replacement store.Replacement) (job.Job, error) {
	return s.change(ctx, "replace a job", memory.Call{Method: "replace", Token: token}, ref, func(tx *tx, q *memory.Queue, r *table.Row) error {
		if replacement.IfVersion != 0 && replacement.IfVersion != r.Version {
			return store.ErrVersion
		}
		if r.State != job.Scheduled {
			return &store.StateError{State: r.State}
		}
		before, size := r.Key(), r.BodySize
		replacement.Apply(&r.Spec)
		if expiry := replacement.Expiry; expiry != nil {
			r.ExpiresAt = clock.Time(tx.Now.Expiry(expiry.In, expiry.At))
		}
		if due := replacement.Due; due != nil {
			r.MoveTo(clock.Time(tx.Now.Due(due.In, due.At)))
		}
		if replacement.MovesTime() && r.ExpiresTooEarly() {
			return store.ErrExpired
		}
		to := r.Progress()
		if err := tx.RecordEvent(r.N, &to, replacement.Kind); err != nil {
			return err
		}
		r.Version++
		if err := tx.rewrite(r, to, size); err != nil {
			return err
		}
		if replacement.Due == nil {
			return nil
		}
		tx.Mem.Steps.SetDelayed(r.N, false)
		tx.Leave(q, before)
		return tx.Arrive(q, r.Key())
	})
}

// rewrite stores a replaced job.
func (tx *tx) rewrite(r *table.Row, to table.Progress, oldSize int64) error {
	c := table.Encode(&r.Spec)
	tx.Mem.NextTTL = 0
	err := tx.Exec(table.ReplaceJob, clock.Millis(r.DueAt), r.Version, to.Entries, db.NullZero(to.First), clock.Millis(r.FirstDueAt), clock.Millis(r.ExpiresAt), clock.Millis(r.FirstDueAt),
		clock.Millis(r.ExpiresAt), r.URL,
		c.Timeout, c.BodySize, c.Spec, c.Body, r.N)
	if err != nil {
		return err
	}
	if c.External != nil {
		return tx.Exec(table.InsertBody, r.N, c.External)
	}
	if oldSize > table.InlineBody {
		return tx.Exec(table.DeleteBody, r.N)
	}
	return nil
}
