package storetest

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Revive revives the jobs one after the other.
func (s *modelShard) Revive(
	ctx context.Context, token store.Token, items []store.Revival,
) ([]store.ReviveResult, error) {
	m := s.model
	bound(len(items))
	now, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return once(s, now, call{"revive", token}, func() ([]store.ReviveResult, error) {
		results := make([]store.ReviveResult, len(items))
		for i, item := range items {
			results[i].Job, results[i].Err = s.revive(item, now)
		}
		return results, nil
	})
}

// revive starts a new generation of an ended job.
func (s *modelShard) revive(item store.Revival, now time.Time) (job.Job, error) {
	r := s.jobs[item.Ref]
	if r == nil {
		return job.Job{}, store.ErrNotFound
	}
	if item.IfVersion != 0 && item.IfVersion != r.job.Version {
		return job.Job{}, store.ErrVersion
	}
	state := r.view(now).State
	if !state.Ended() || (item.From != "" && item.From != state) {
		return job.Job{}, &store.StateError{State: state}
	}
	due, expires := dueAt(now, item.Delay, item.RunAt), r.job.ExpiresAt
	s.hasTTL = true // it may get an expiry
	if item.ExpiresIn > 0 {
		expires = after(now, item.ExpiresIn)
	}
	if expiresBefore(due, expires) {
		return job.Job{}, store.ErrExpired
	}
	t := r.queue.topic
	switch state {
	case job.Delivered:
		t.delivered--
	case job.Dead:
		t.died--
	default:
		t.cancelled--
	}
	s.remove(r)
	if item.URL != "" {
		r.job.SetURL(item.URL)
	}
	if item.Header != nil {
		r.job.Header = item.Header
	}
	r.job.FinishedAt, r.job.Reason = time.Time{}, ""
	r.job.Version++
	r.job.Generation++
	r.job.FailedAttempts, r.job.ConsecutiveLost = 0, 0
	r.job.DueAt, r.job.FirstDueAt = due, due
	r.job.ExpiresAt, r.aged = expires, false
	r.addEvent(item.Event(now))
	if id := s.ids[item.Ref]; id != nil {
		id.state, id.finishedAt, id.reason = "", time.Time{}, ""
	}
	s.schedule(r, now)
	return r.view(now), nil
}

// Purge removes ended jobs. Their ids stay known and their counts stay.
func (s *modelShard) Purge(ctx context.Context, token store.Token, items []store.Removal) ([]error, error) {
	m := s.model
	bound(len(items))
	now, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return once(s, now, call{"purge", token}, func() ([]error, error) {
		errs := make([]error, len(items))
		for i, item := range items {
			switch r := s.jobs[item.Ref]; {
			case r == nil:
				errs[i] = store.ErrNotFound
			case item.IfVersion != 0 && item.IfVersion != r.job.Version:
				errs[i] = store.ErrVersion
			case !r.job.State.Ended() || item.From != "" && item.From != r.job.State:
				errs[i] = &store.StateError{State: r.view(now).State}
			default:
				s.remove(r)
				delete(s.jobs, item.Ref)
			}
		}
		return errs, nil
	})
}
