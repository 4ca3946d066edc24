package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// GetRecords implements store.Shard.
func (s *Store) GetRecords(ctx context.Context, refs []job.Ref) (records []store.Record, err error) {
	checkBatch("jobs to read", len(refs))
	err = s.db.Read(ctx, "read jobs", func(ctx context.Context, c *db.Conn) error {
		size := 0
		records = make([]store.Record, 0, len(refs))
		for i, ref := range refs {
			r, err := record(ctx, c, ref)
			if errors.Is(err, store.ErrNotFound) {
				records = append(records, store.Record{})
				continue
			}
			if err != nil {
				return err
			}
			found := store.Record{Job: r.View(s.clock()), Fingerprint: r.Fingerprint, MaxAge: r.MaxAge, Number: r.N}
			if size += found.Size(); i > 0 && size > store.RecordBytes {
				return nil
			}
			records = append(records, found)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// scanChunk is how many lanes ScanLanes reads at a time.
const scanChunk = 500

// ScanLanes implements store.Shard. The cursor is the name of a queue.
func (s *Store) ScanLanes(ctx context.Context, cursor string) (docs []store.Document, next string, err error) {
	after := append(strings.SplitN(cursor, "/", 3), "", "", "")
	err = s.db.Read(ctx, "read settings of lanes", func(ctx context.Context, c *db.Conn) error {
		return c.Query(ctx, table.ScanLanes, func(v []driver.Value) error {
			key := store.DocumentKey{
				Kind: store.KindLane, Namespace: db.Text(v[0]),
				Name: db.Text(v[1]), Lane: db.Text(v[2]),
			}
			docs = append(docs, store.Document{Key: key, Revision: db.Int(v[3]), Value: []byte(db.Text(v[4]))})
			return nil
		}, after[0], after[1], after[2], int64(scanChunk))
	})
	if err != nil {
		return nil, "", err
	}
	if len(docs) == scanChunk {
		next = docs[len(docs)-1].Key.Queue().String()
	}
	return docs, next, nil
}

// PutRecords implements store.Shard.
func (s *Store) PutRecords(ctx context.Context, token store.Token, records []store.Record) ([]store.Outcome, error) {
	checkBatch("records", len(records))
	rows := make([]recordRow, len(records))
	for i := range records {
		rows[i].fill(&records[i])
	}
	c := op{Verb: "put jobs", Durable: true, Weight: len(records)}
	outcomes, err := unit.Submit(ctx, s.db, token, c, func(all []store.Outcome) int { return len(all) }, func(
		u *unit.Unit,
	) (all []store.Outcome, err error) {
		all = make([]store.Outcome, len(records))
		for i := range records {
			if all[i], err = putRecord(u, &records[i], &rows[i]); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
	return slices.Clone(outcomes), err
}

// A recordRow is what a job's row and history take, prepared by the caller's goroutine.
type recordRow struct {
	columns  table.Encoded
	attempts []table.Entry
	entries  int64
}

func (r *recordRow) fill(from *store.Record) {
	r.columns = table.Encode(&from.Spec)
	r.attempts, r.entries = table.EncodeHistory(&from.Job)
}

// putRecord stores one job as it is, or finds that its id is known.
func putRecord(u *unit.Unit, put *store.Record, r *recordRow) (store.Outcome, error) {
	if known, err := findRecord(u, put); err != nil || known != 0 {
		return known, err
	}
	q, err := u.Queue(put.Queue)
	if err != nil {
		return 0, err
	}
	u.Touch(q)
	n := u.Mem.LastN + 1
	due, firstDue, expires := clock.Millis(put.DueAt), clock.Millis(put.FirstDueAt), clock.Millis(put.ExpiresAt)
	ttl := table.TTLEnd(firstDue, expires, put.MaxAge)
	state := put.State
	if !state.Ended() {
		state = job.Scheduled
	}
	c := &r.columns
	err = u.Exec(table.PutJob,
		n, q.Id, q.Topic.Id, string(state), due, db.NullZero(clock.Millis(put.FinishedAt)),
		db.NullEmpty(string(put.Reason)), put.Version, int64(put.Generation), int64(put.Attempts),
		int64(put.FailedAttempts), int64(put.ConsecutiveLost), db.NullEmpty(put.Answer()), r.entries,
		clock.Millis(put.CreatedAt), firstDue, expires, db.NullZero(clock.CeilMillis(put.MaxAge)), db.NullZero(ttl),
		u.Turn(q, firstDue), put.Namespace, put.ID, put.Fingerprint, put.URL, c.Timeout, c.BodySize, c.Spec, c.Body)
	if err != nil {
		return 0, err
	}
	if c.External != nil {
		if err := u.Exec(table.InsertBody, n, c.External); err != nil {
			return 0, err
		}
	}
	for _, e := range r.attempts {
		if err := u.Exec(table.InsertAttempt, n, e.Slot, e.Seq, e.Text); err != nil {
			return 0, err
		}
	}
	u.Mem.LastN = n
	u.Mem.Steps.SetDelayed(n, false) // its times were counted by another clock
	q.Rows++
	q.Topic.Registered++
	size := c.Size(put.URL)
	if !state.Ended() {
		q.Topic.Bytes += size
		u.Mem.NoteTTL(ttl)
		u.MayBeNewHead = true
		return store.Created, u.AddWaiting(q, table.Key{Due: due, N: n})
	}
	q.Topic.Count(state, 1)
	finished := clock.Millis(put.FinishedAt)
	kept, _ := q.Topic.Retained(state)
	if kept.Jobs == 0 || finished < kept.Oldest {
		kept.Oldest = finished
	}
	kept.Jobs++
	kept.Bytes += size
	return store.Created, nil
}

// findRecord returns the outcome of a record whose id is known; zero: it is not.
func findRecord(u *unit.Unit, put *store.Record) (found store.Outcome, err error) {
	outcome := func(same bool) store.Outcome {
		if same {
			return store.Existing
		}
		return store.Conflict
	}
	known, err := u.FindRow(put.Ref(), false)
	switch {
	case err == nil:
		return outcome(put.IsSameRegistration(known.Queue, known.CreatedAt, known.Fingerprint)), nil
	case !errors.Is(err, store.ErrNotFound):
		return 0, err
	}
	err = u.Query(table.FindID, func(v []driver.Value) error {
		found = outcome(bytes.Equal(db.Blob(v[0]), put.Fingerprint))
		return nil
	}, put.Namespace, put.ID)
	return found, err
}
