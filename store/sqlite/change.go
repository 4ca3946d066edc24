package sqlite

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
)

// change makes one call that changes one job, and returns the job after it.
func (s *Store) change(
	ctx context.Context, verb string, c call, ref job.Ref, do func(*tx, *queue, *row) error,
) (job.Job, error) {
	var answer job.Job
	err := s.db.Submit(ctx, &op{Verb: verb, Durable: true, Weight: 1, Run: func(tx *tx) (err error) {
		answer, err = once(tx, c, func(j job.Job) int { return 1024 + len(j.Body) }, func() (job.Job, error) {
			r, err := tx.find(ref, true)
			if err != nil {
				return job.Job{}, err
			}
			q, err := tx.loadQueue(r.Queue)
			if err != nil {
				return job.Job{}, err
			}
			tx.mayBeNewHead = true
			if err := do(tx, q, r); err != nil {
				return job.Job{}, err
			}
			return r.view(tx.now), nil
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
	return s.change(ctx, "cancel a job", call{"cancel", token}, ref, func(tx *tx, q *queue, r *row) error {
		switch {
		case r.State == job.Delivered, r.State == job.Dead:
			return &store.StateError{State: r.State}
		case r.State == job.Cancelled, r.CancelRequested:
			return nil
		}
		to := r.progress()
		to.version++
		if err := tx.recordEvent(r.n, &to, job.KindCancelled); err != nil {
			return err
		}
		r.Version = to.version
		if r.State == job.Running {
			r.CancelRequested = true
			return tx.mark(ref, r.n, to)
		}
		tx.leave(q, r.key())
		r.State, r.Reason, r.FinishedAt = job.Cancelled, job.ReasonCancelled, clock.Time(tx.now.Millis)
		return tx.finish(q, ref, r.n, to, job.Cancelled, job.ReasonCancelled)
	})
}

// mark notes on a running job that it is to be cancelled.
func (tx *tx) mark(ref job.Ref, n int64, to progress) error {
	if err := tx.Exec(markCancel, to.version, to.entries, db.NullZero(to.first), n); err != nil {
		return err
	}
	if h := tx.mem.leases[ref]; h != nil {
		save(tx, &h.progress)
		h.version, h.entries, h.first, h.cancel = to.version, to.entries, to.first, true
	}
	return nil
}

// Replace implements store.Shard.
func (s *Store) Replace(ctx context.Context, token store.Token, ref job.Ref, replacement store.Replacement) (job.Job, error) {
	return s.change(ctx, "replace a job", call{"replace", token}, ref, func(tx *tx, q *queue, r *row) error {
		if replacement.IfVersion != 0 && replacement.IfVersion != r.Version {
			return store.ErrVersion
		}
		if r.State != job.Scheduled {
			return &store.StateError{State: r.State}
		}
		before, size := r.key(), r.bodySize
		replacement.Apply(&r.Spec)
		if expiry := replacement.Expiry; expiry != nil {
			r.ExpiresAt = clock.Time(tx.now.Expiry(expiry.In, expiry.At))
		}
		if due := replacement.Due; due != nil {
			r.moveTo(clock.Time(tx.now.Due(due.In, due.At)))
		}
		if replacement.MovesTime() && r.expiresTooEarly() {
			return store.ErrExpired
		}
		to := r.progress()
		if err := tx.recordEvent(r.n, &to, replacement.Kind); err != nil {
			return err
		}
		r.Version++
		if err := tx.rewrite(r, to, size); err != nil {
			return err
		}
		if replacement.Due == nil {
			return nil
		}
		tx.mem.steps.SetDelayed(r.n, false)
		tx.leave(q, before)
		return tx.arrive(q, r.key())
	})
}

// moveTo sets the due time.
func (r *row) moveTo(due time.Time) {
	r.DueAt = due
	if r.FailedAttempts == 0 && r.ConsecutiveLost == 0 {
		r.FirstDueAt = r.DueAt
	}
}

// rewrite stores a replaced job.
func (tx *tx) rewrite(r *row, to progress, oldSize int64) error {
	c := encode(&r.Spec)
	tx.mem.nextTTL = 0
	err := tx.Exec(replaceJob, clock.Millis(r.DueAt), r.Version, to.entries, db.NullZero(to.first), clock.Millis(r.FirstDueAt), clock.Millis(r.ExpiresAt), clock.Millis(r.FirstDueAt),
		clock.Millis(r.ExpiresAt), r.URL,
		c.timeout, c.bodySize, c.spec, c.body, r.n)
	if err != nil {
		return err
	}
	if c.external != nil {
		return tx.Exec(insertBody, r.n, c.external)
	}
	if oldSize > inlineBody {
		return tx.Exec(deleteBody, r.n)
	}
	return nil
}
