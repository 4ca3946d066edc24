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

// inserted is the result of a call, as the reply cache keeps it: of the jobs that were created, only the time.
type inserted struct {
	at    clock.Instant
	known []knownJob // in order
}

// A knownJob is the result of an insertion whose id was known.
type knownJob struct {
	index int
	store.InsertResult
}

// Insert implements store.Shard.
func (s *Store) Insert(ctx context.Context, token store.Token, entries []store.NewJob) ([]store.InsertResult, error) {
	checkBatch("entries", len(entries))
	rows := make([]newRow, len(entries))
	for i := range entries {
		rows[i].fill(&entries[i])
	}
	c := op{Verb: "insert jobs", Durable: true, Weight: len(entries)}
	all, err := unit.Submit(ctx, s.db, token, c, inserted.weigh, func(u *unit.Unit) (all inserted, err error) {
		all.at = u.Now
		for i := range entries {
			known, err := insertJob(u, &entries[i], &rows[i])
			if err != nil {
				return inserted{}, err
			}
			if known.Outcome != 0 {
				all.known = append(all.known, knownJob{i, known})
			}
		}
		return all, nil
	})
	if err != nil {
		return nil, err
	}
	now := s.clock().Millis
	results := make([]store.InsertResult, len(entries))
	for _, k := range all.known {
		results[k.index] = k.InsertResult
	}
	for i := range results {
		if results[i].Outcome == 0 {
			results[i] = store.InsertResult{Outcome: store.Created, Job: created(&entries[i], all.at, now)}
		}
	}
	return results, nil
}

func (r inserted) weigh() int {
	weight := 64
	for _, k := range r.known {
		weight += 1024 + len(k.Job.Body)
	}
	return weight
}

// created returns the job of an entry that was inserted at a time, as it is now.
func created(e *store.NewJob, at clock.Instant, now int64) job.Job {
	due := at.Due(e.Delay, e.RunAt)
	j := job.Job{Spec: e.Spec}
	j.CreatedAt, j.DueAt, j.FirstDueAt, j.ExpiresAt = clock.Time(at.Millis), clock.Time(due), clock.Time(due),
		clock.Time(at.Expiry(e.ExpiresIn, e.ExpiresAt))
	j.State, j.Version = table.WaitingState(due, now), 1
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

// insertJob registers one job, or returns that of the id if it is known.
func insertJob(u *unit.Unit, e *store.NewJob, r *newRow) (known store.InsertResult, err error) {
	if u.Mem.Ids > 0 {
		if p, err := findRemembered(u, e); err != nil || p.Outcome != 0 {
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
		return known, err
	}
	u.Touch(q)
	due, expires := u.Now.Due(e.Delay, e.RunAt), u.Now.Expiry(e.ExpiresIn, e.ExpiresAt)
	n := u.Mem.LastN + 1
	ttl := table.TTLEnd(due, expires, e.MaxAge)
	copy(r.args[:10], []driver.Value{
		n, q.Id, q.Topic.Id, due, u.Now.Millis, due, expires,
		db.NullZero(clock.CeilMillis(e.MaxAge)), db.NullZero(ttl), u.Turn(q, due),
	})
	changed, err := u.Change(table.InsertJob, r.args[:]...)
	if err != nil {
		return known, err
	}
	if changed == 0 {
		return findExisting(u, e)
	}
	u.Mem.LastN = n
	u.Mem.Steps.SetDelayed(n, e.RunAt.IsZero())
	if r.external != nil {
		if err := u.Exec(table.InsertBody, n, r.external); err != nil {
			return known, err
		}
	}
	q.Rows++
	q.Topic.Registered++
	q.Topic.Bytes += r.size
	u.Mem.NoteTTL(ttl)
	u.MayBeNewHead = true
	return known, u.AddWaiting(q, table.Key{Due: due, N: n})
}

// findExisting answers for an id whose job is there.
func findExisting(u *unit.Unit, e *store.NewJob) (store.InsertResult, error) {
	known, err := u.Find(e.Ref(), true)
	if err != nil {
		return store.InsertResult{}, err
	}
	view := known.View(u.Now)
	return store.InsertResult{Outcome: outcome(known.Fingerprint, e.Fingerprint, view.State), Job: view}, nil
}

// findRemembered answers for an id whose job is gone; no outcome when it is not remembered.
func findRemembered(u *unit.Unit, e *store.NewJob) (p store.InsertResult, err error) {
	err = u.Query(table.FindID, func(v []driver.Value) error {
		gone := job.Job{Spec: e.Spec}
		gone.State, gone.FinishedAt, gone.Reason = job.State(db.Text(v[1])), clock.Time(db.Int(v[2])),
			policy.Reason(db.Text(v[3]))
		p = store.InsertResult{Outcome: outcome(db.Blob(v[0]), e.Fingerprint, gone.State), Job: gone}
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
