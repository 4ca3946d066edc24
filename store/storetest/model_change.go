package storetest

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// change runs a call that changes one job.
func (s *modelShard) change(
	ctx context.Context, c call, ref job.Ref, do func(*record, time.Time) error,
) (job.Job, error) {
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return job.Job{}, err
	}
	defer m.mu.Unlock()
	return once(s, now, c, func() (job.Job, error) {
		r := s.jobs[ref]
		if r == nil {
			return job.Job{}, store.ErrNotFound
		}
		q := r.queue
		waits := q.isOrdered() && q.claimable(now) == nil
		if err := do(r, now); err != nil {
			return job.Job{}, err
		}
		if waits && q.claimable(now) != nil && !s.blocked(q, now) {
			s.notify(q, now) // the job has given up its turn
		}
		return r.view(now), nil
	})
}

// Cancel ends a job, or marks it while it is running.
func (s *modelShard) Cancel(
	ctx context.Context, token store.Token, ref job.Ref, cancellation store.Cancellation,
) (job.Job, error) {
	return s.change(ctx, call{"cancel", token}, ref, func(r *record, now time.Time) error {
		switch {
		case cancellation.IfVersion != 0 && cancellation.IfVersion != r.job.Version:
			return store.ErrVersion
		case r.job.State == job.Delivered, r.job.State == job.Dead:
			return &store.StateError{State: r.job.State}
		case r.job.State == job.Cancelled, r.job.CancelRequested:
			return nil
		}
		r.job.Version++
		r.addEvent(cancellation.Event(now))
		if r.job.State == job.Running {
			r.job.CancelRequested = true
			return nil
		}
		s.end(r, job.Cancelled, job.ReasonCancelled, now)
		s.reschedule(r.queue, now, true)
		return nil
	})
}

// Replace changes a job that waits.
func (s *modelShard) Replace(
	ctx context.Context, token store.Token, ref job.Ref, replacement store.Replacement,
) (job.Job, error) {
	return s.change(ctx, call{"replace", token}, ref, func(r *record, now time.Time) error {
		if replacement.IfVersion != 0 && replacement.IfVersion != r.job.Version {
			return store.ErrVersion
		}
		if r.job.State != job.Scheduled {
			return &store.StateError{State: r.job.State}
		}
		due, expires := r.job.DueAt, r.job.ExpiresAt
		s.hasTTL = true // it may get an expiry
		if moved := replacement.Due; moved != nil {
			due = dueAt(now, moved.In, moved.At)
		}
		if moved := replacement.Expiry; moved != nil {
			expires = expiresAt(now, moved.In, moved.At)
		}
		if replacement.MovesTime() && expiresBefore(due, expires) {
			return store.ErrExpired
		}
		place := r.place
		s.remove(r)
		replacement.Apply(&r.job.Spec)
		r.job.Spec = clone(r.job.Spec)
		r.job.Version++
		r.job.ExpiresAt, r.aged = expires, false
		r.addEvent(replacement.Event(now))
		if replacement.Due == nil {
			s.placeIn(r, place)
			return nil
		}
		r.job.DueAt = due
		if r.job.FailedAttempts == 0 && r.job.ConsecutiveLost == 0 {
			r.job.FirstDueAt = r.job.DueAt
		}
		s.schedule(r, now)
		return nil
	})
}

// expiresBefore reports whether a job would be due after its expiry.
func expiresBefore(due, expires time.Time) bool { return !expires.IsZero() && expires.Before(due) }
