package sqlite

import (
	"context"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// change makes one call that changes one job, and returns the job after it.
func (s *Store) change(
	ctx context.Context, verb string, token store.Token, ref job.Ref,
	do func(*unit.Unit, *memory.Queue, *table.Row) error,
) (job.Job, error) {
	weigh := func(j job.Job) int { return 1024 + len(j.Body) }
	return unit.Submit(ctx, s.db, token, op{
		Verb: verb, Durable: true,
		Weight: 1,
	}, weigh, func(u *unit.Unit) (job.Job, error) {
		r, err := u.Find(ref, true)
		if err != nil {
			return job.Job{}, err
		}
		q, err := u.LoadQueue(r.Queue)
		if err != nil {
			return job.Job{}, err
		}
		u.MayBeNewHead = true
		if err := do(u, q, r); err != nil {
			return job.Job{}, err
		}
		return r.View(u.Now), nil
	})
}

// Cancel implements store.Shard.
func (s *Store) Cancel(
	ctx context.Context, token store.Token, ref job.Ref, cancellation store.Cancellation,
) (job.Job, error) {
	return s.change(ctx, "cancel a job", token, ref, func(u *unit.Unit, q *memory.Queue, r *table.Row) error {
		switch {
		case cancellation.IfVersion != 0 && cancellation.IfVersion != r.Version:
			return store.ErrVersion
		case r.State == job.Delivered, r.State == job.Dead:
			return &store.StateError{State: r.State}
		case r.State == job.Cancelled, r.CancelRequested:
			return nil
		}
		to := r.Progress()
		if err := u.RecordEvent(r.N, &to, cancellation.Event(clock.Time(u.Now.Millis))); err != nil {
			return err
		}
		r.Version = to.Version
		if r.State == job.Running {
			r.CancelRequested = true
			return markCancelled(u, ref, r.N, to)
		}
		u.RemoveWaiting(q, r.Key())
		r.State, r.Reason, r.FinishedAt = job.Cancelled, job.ReasonCancelled, clock.Time(u.Now.Millis)
		return u.Finish(q, ref, r.N, to, job.Cancelled, job.ReasonCancelled)
	})
}

// markCancelled notes on a running job that it is to be cancelled.
func markCancelled(u *unit.Unit, ref job.Ref, n int64, to table.Progress) error {
	if err := u.Exec(table.MarkCancel, to.Version, to.Entries, db.NullZero(to.First), n); err != nil {
		return err
	}
	if h := u.Mem.Leases[ref]; h != nil {
		unit.Save(u, &h.Progress)
		h.Version, h.Entries, h.First, h.Cancel = to.Version, to.Entries, to.First, true
	}
	return nil
}

// Replace implements store.Shard.
func (s *Store) Replace(
	ctx context.Context, token store.Token, ref job.Ref, replacement store.Replacement,
) (job.Job, error) {
	return s.change(ctx, "replace a job", token, ref, func(u *unit.Unit, q *memory.Queue, r *table.Row) error {
		if replacement.IfVersion != 0 && replacement.IfVersion != r.Version {
			return store.ErrVersion
		}
		if r.State != job.Scheduled {
			return &store.StateError{State: r.State}
		}
		before, body, size := r.Key(), r.BodySize, r.Size()
		replacement.Apply(&r.Spec)
		if expiry := replacement.Expiry; expiry != nil {
			r.ExpiresAt = clock.Time(u.Now.Expiry(expiry.In, expiry.At))
		}
		if due := replacement.Due; due != nil {
			r.MoveTo(clock.Time(u.Now.Due(due.In, due.At)))
		}
		if replacement.MovesTime() && r.ExpiresTooEarly() {
			return store.ErrExpired
		}
		to := r.Progress()
		if err := u.RecordEvent(r.N, &to, replacement.Event(clock.Time(u.Now.Millis))); err != nil {
			return err
		}
		r.Version = to.Version
		written, err := rewriteJob(u, q, r, to, body)
		if err != nil {
			return err
		}
		u.TouchTopic(q.Topic)
		q.Topic.Bytes += written - size
		if replacement.Due == nil {
			return nil
		}
		u.Mem.Steps.SetDelayed(r.N, false)
		u.RemoveWaiting(q, before)
		return u.AddWaiting(q, r.Key())
	})
}

// rewriteJob stores a replaced job, and returns its size.
func rewriteJob(u *unit.Unit, q *memory.Queue, r *table.Row, to table.Progress, oldBody int64) (size int64, err error) {
	c := table.Encode(&r.Spec)
	u.Mem.NextTTL = 0
	err = u.Exec(table.ReplaceJob, clock.Millis(r.DueAt), r.Version, to.Entries, db.NullZero(to.First),
		clock.Millis(r.FirstDueAt), clock.Millis(r.ExpiresAt),
		u.Turn(q, clock.Millis(r.FirstDueAt)), clock.Millis(r.FirstDueAt), clock.Millis(r.ExpiresAt), r.URL,
		c.Timeout, c.BodySize, c.Spec, c.Body, r.N)
	switch {
	case err != nil:
	case c.External != nil:
		err = u.Exec(table.InsertBody, r.N, c.External)
	case oldBody > table.InlineBody:
		err = u.Exec(table.DeleteBody, r.N)
	}
	return c.Size(r.URL), err
}
