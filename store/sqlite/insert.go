package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// insertOutcome is the result of one insertion, as the reply cache keeps it.
type insertOutcome struct {
	outcome               store.Outcome
	created, due, expires int64
	// known is the job that was there before.
	known *job.Job
}

// Insert implements store.Shard.
func (s *Store) Insert(ctx context.Context, token store.Token, entries []store.NewJob) ([]store.InsertResult, error) {
	checkBatch("entries", len(entries))
	rows := make([]newRow, len(entries))
	for i := range entries {
		rows[i].fill(&entries[i])
	}
	c := op{Verb: "insert jobs", Durable: true, Weight: len(entries)}
	all, err := unit.Submit(ctx, s.db, token, c, weighOutcomes, func(u *unit.Unit) (all []insertOutcome, err error) {
		all = make([]insertOutcome, len(entries))
		for i := range entries {
			if all[i], err = insertJob(u, &entries[i], &rows[i]); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
	if err != nil {
		return nil, err
	}
	now := s.clock().Millis
	results := make([]store.InsertResult, len(entries))
	for i, p := range all {
		results[i] = store.InsertResult{Outcome: p.outcome, Job: p.job(entries[i].Spec, now)}
	}
	return results, nil
}

func weighOutcomes(all []insertOutcome) int {
	weight := 0
	for _, p := range all {
		weight += 48
		if p.known != nil {
			weight += 1024 + len(p.known.Body)
		}
	}
	return weight
}

func (p insertOutcome) job(spec job.Spec, now int64) job.Job {
	if p.known != nil {
		return *p.known
	}
	j := job.Job{Spec: spec}
	j.CreatedAt, j.DueAt, j.FirstDueAt, j.ExpiresAt = clock.Time(p.created), clock.Time(p.due), clock.Time(p.due),
		clock.Time(p.expires)
	j.State, j.Version = table.WaitingState(p.due, now), 1
	return j
}

// A newRow holds the arguments of table.InsertJob, of which the writer fills in the first ten.
type newRow struct {
	args     [18]driver.Value
	external driver.Value
	size     int64
}

func (r *newRow) fill(e *store.NewJob) {
	c := table.Encode(&e.Spec)
	r.external, r.size = c.External, c.Size(e.URL)
	copy(r.args[10:], []driver.Value{
		e.Namespace, e.ID, e.Fingerprint, e.URL, c.Timeout, c.BodySize, c.Spec, c.Body,
	})
}

// insertJob registers one job, or finds that its id is known.
func insertJob(u *unit.Unit, e *store.NewJob, r *newRow) (insertOutcome, error) {
	if u.Mem.Ids > 0 {
		if p, err := findRemembered(u, e); err != nil || p.outcome != 0 {
			return p, err
		}
	}
	// which an id that is known must not make
	if u.Mem.Topics[memory.TopicName{Namespace: e.Namespace, Name: e.Topic}] == nil {
		if p, err := findExisting(u, e); !errors.Is(err, store.ErrNotFound) {
			return p, err
		}
	}
	q, err := u.Queue(e.Queue)
	if err != nil {
		return insertOutcome{}, err
	}
	u.Touch(q)
	p := insertOutcome{outcome: store.Created, created: u.Now.Millis, due: u.Now.Due(e.Delay, e.RunAt)}
	p.expires = u.Now.Expiry(e.ExpiresIn, e.ExpiresAt)
	n := u.Mem.LastN + 1
	ttl := table.TTLEnd(p.due, p.expires, e.MaxAge)
	copy(r.args[:10], []driver.Value{
		n, q.Id, q.Topic.Id, p.due, p.created, p.due, p.expires,
		db.NullZero(clock.CeilMillis(e.MaxAge)), db.NullZero(ttl), u.Turn(q, p.due),
	})
	changed, err := u.Change(table.InsertJob, r.args[:]...)
	if err != nil {
		return insertOutcome{}, err
	}
	if changed == 0 {
		return findExisting(u, e)
	}
	u.Mem.LastN = n
	u.Mem.Steps.SetDelayed(n, e.RunAt.IsZero())
	if r.external != nil {
		if err := u.Exec(table.InsertBody, n, r.external); err != nil {
			return insertOutcome{}, err
		}
	}
	q.Rows++
	q.Topic.Registered++
	q.Topic.Bytes += r.size
	u.Mem.NoteTTL(ttl)
	u.MayBeNewHead = true
	return p, u.AddWaiting(q, table.Key{Due: p.due, N: n})
}

// findExisting answers for an id whose job is there.
func findExisting(u *unit.Unit, e *store.NewJob) (insertOutcome, error) {
	known, err := u.Find(e.Ref(), true)
	if err != nil {
		return insertOutcome{}, err
	}
	view := known.View(u.Now)
	return insertOutcome{outcome: outcome(known.Fingerprint, e.Fingerprint, view.State), known: &view}, nil
}

// findRemembered answers for an id whose job is gone; no outcome when it is not remembered.
func findRemembered(u *unit.Unit, e *store.NewJob) (p insertOutcome, err error) {
	err = u.Query(table.FindID, func(v []driver.Value) error {
		gone := job.Job{Spec: e.Spec}
		gone.State, gone.FinishedAt, gone.Reason = job.State(db.Text(v[1])), clock.Time(db.Int(v[2])),
			policy.Reason(db.Text(v[3]))
		p = insertOutcome{outcome: outcome(db.Blob(v[0]), e.Fingerprint, gone.State), known: &gone}
		return nil
	}, e.Namespace, e.ID)
	return p, err
}

func outcome(known, sent []byte, state job.State) store.Outcome {
	if state != job.Cancelled && bytes.Equal(known, sent) {
		return store.Existing
	}
	return store.Conflict
}
