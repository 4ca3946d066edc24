package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// reviveBodies bounds the bodies that a revival answers, and that are kept for a repeat of the call, in bytes: beyond
// it, jobs come without theirs.
const reviveBodies = 8 << 20

// Revive implements store.Shard: one transaction, in which each item is refused for itself.
func (s *Store) Revive(ctx context.Context, token store.Token, items []store.Revival) ([]store.ReviveResult, error) {
	checkBatch("revivals", len(items))
	c := op{Verb: "revive jobs", Durable: true, Weight: len(items)}
	results, err := unit.Submit(ctx, s.db, token, c, weighRevived, func(u *unit.Unit) ([]store.ReviveResult, error) {
		results := make([]store.ReviveResult, len(items))
		room := int64(reviveBodies)
		for i, item := range items {
			r, err := reviveJob(u, item, &room)
			if db.IsError(err) && !table.IsUnreadable(err) {
				return nil, err
			}
			if err != nil {
				results[i].Err = db.Unavailable(err)
				continue
			}
			results[i].Job = r.View(u.Now)
		}
		return results, nil
	})
	return slices.Clone(results), err
}

func weighRevived(all []store.ReviveResult) int {
	weight := 0
	for _, r := range all {
		weight += 1024 + len(r.Job.Body)
	}
	return weight
}

// reviveJob sends an ended job on another round. It answers the body as far as there is room, of which it takes the
// body's.
func reviveJob(u *unit.Unit, item store.Revival, room *int64) (*table.Row, error) {
	r, err := u.Find(item.Ref, *room > 0)
	if err != nil {
		return nil, err
	}
	if item.IfVersion != 0 && item.IfVersion != r.Version {
		return nil, store.ErrVersion
	}
	if !r.State.Ended() || (item.From != "" && r.State != item.From) {
		return nil, &store.StateError{State: r.View(u.Now).State}
	}
	r.DueAt = clock.Time(u.Now.Due(item.Delay, item.RunAt))
	if item.ExpiresIn > 0 {
		r.ExpiresAt = clock.Time(u.Now.After(item.ExpiresIn))
	}
	if r.ExpiresTooEarly() {
		return nil, store.ErrExpired
	}
	if *room -= int64(len(r.Body)); *room < 0 {
		r.Body = nil
	}
	q, err := u.LoadQueue(r.Queue)
	if err != nil {
		return nil, err
	}
	u.MayBeNewHead = true
	releaseRetained(u, q, r)
	q.Topic.Count(r.State, -1)
	to := r.Progress()
	if err := u.RecordEvent(r.N, &to, item.Event(clock.Time(u.Now.Millis))); err != nil {
		return nil, err
	}
	spec := r.EncodedSpec
	if spec == nil { // read from an empty column, and not NULL
		spec = []byte{}
	}
	if item.URL != "" {
		r.SetURL(item.URL)
	}
	if item.Header != nil {
		r.Header = item.Header
	}
	if item.URL != "" || item.Header != nil {
		spec = table.Encode(&r.Spec).Spec
		r.EncodedSpec = spec
	}
	q.Topic.Bytes += r.Size()
	r.State, r.FinishedAt, r.Reason = job.Scheduled, time.Time{}, ""
	r.Version = to.Version
	r.Generation++
	r.FailedAttempts, r.ConsecutiveLost = 0, 0
	r.FirstDueAt = r.DueAt
	u.Mem.NextTTL = 0
	err = u.Exec(table.ReviveJob, clock.Millis(r.DueAt), r.Version, int64(r.Generation),
		to.Entries, db.NullZero(to.First), clock.Millis(r.FirstDueAt), clock.Millis(r.ExpiresAt),
		u.Turn(q, clock.Millis(r.FirstDueAt)), clock.Millis(r.FirstDueAt), clock.Millis(r.ExpiresAt), r.URL, spec, r.N)
	if err != nil {
		return nil, err
	}
	return r, u.AddWaiting(q, r.Key())
}

// releaseRetained counts an ended job that is kept no longer.
func releaseRetained(u *unit.Unit, q *memory.Queue, r *table.Row) {
	u.Touch(q)
	kept, _ := q.Topic.Retained(r.State)
	kept.Jobs--
	kept.Bytes -= r.Size()
}

// Purge implements store.Shard: one transaction, in which each job is refused for itself.
func (s *Store) Purge(ctx context.Context, token store.Token, items []store.Removal) ([]error, error) {
	checkBatch("jobs to purge", len(items))
	c := op{Verb: "purge jobs", Durable: true, Weight: len(items)}
	errs, err := unit.Submit(ctx, s.db, token, c, memory.WeighErrors, func(u *unit.Unit) ([]error, error) {
		errs := make([]error, len(items))
		for i, item := range items {
			if errs[i] = purgeJob(u, item); db.IsError(errs[i]) {
				return nil, errs[i]
			}
		}
		return errs, nil
	})
	return slices.Clone(errs), err
}

// purgeJob removes an ended job.
func purgeJob(u *unit.Unit, item store.Removal) error {
	r, err := u.FindRow(item.Ref, false)
	if err != nil {
		return err
	}
	if item.IfVersion != 0 && item.IfVersion != r.Version {
		return store.ErrVersion
	}
	if !r.State.Ended() || item.From != "" && item.From != r.State {
		return &store.StateError{State: r.View(u.Now).State}
	}
	q, err := u.LoadQueue(r.Queue)
	if err != nil {
		return err
	}
	releaseRetained(u, q, r)
	to := r.Progress()
	if err := u.Erase(q, r.N, to); err != nil {
		return err
	}
	return u.RememberID(q.Topic, item.Ref, to, r.State, r.Reason, clock.Millis(r.FinishedAt))
}
