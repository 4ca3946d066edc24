package table

import (
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
)

// A Row is a job as it is stored. Until Decode, its Spec has only what columns hold: name, URL and timeout.
type Row struct {
	job.Job
	N           int64
	Fingerprint []byte
	Entries     int64 // of the record, ever made
	First       int64 // number of the first of them; 0: it is among the others, or missing
	// BodySize is -1 for a body that is nil.
	BodySize    int64
	EncodedSpec []byte
	TTLEnd      int64         // only of a claim; 0: it never ends
	MaxAge      time.Duration // only of a record; 0: none
}

// Key orders a queue's waiting jobs.
func (r *Row) Key() Key { return Key{clock.Millis(r.DueAt), r.N} }

// Size is what a job counts for quotas and retention by bytes.
func (r *Row) Size() int64 { return size(r.BodySize, r.URL, r.EncodedSpec) }

// size is Row.Size of the columns of a job.
func size(body int64, url string, spec []byte) int64 { return max(body, 0) + int64(len(url)+len(spec)) }

// Cells are the columns of a result row that have not been read yet. NULL is read as the zero value.
type Cells []driver.Value

// Next returns the next column.
func (c *Cells) Next() driver.Value {
	v := (*c)[0]
	*c = (*c)[1:]
	return v
}

// Int returns the next column, an integer.
func (c *Cells) Int() int64 { return db.Int(c.Next()) }

func (c *Cells) int() int { return int(c.Int()) }

// Text returns the next column, a text.
func (c *Cells) Text() string { return db.Text(c.Next()) }

// Blob returns the next column, a blob.
func (c *Cells) Blob() []byte { return db.Blob(c.Next()) }

func (c *Cells) date() time.Time { return clock.Time(c.Int()) }

// Row reads columns. It cannot fail: moving or removing a job needs no more.
func (c *Cells) Row() *Row {
	r := &Row{N: c.Int()}
	r.State = job.State(c.Text())
	r.DueAt = c.date()
	r.FinishedAt = c.date()
	r.Reason = policy.Reason(c.Text())
	r.Version = c.Int()
	r.Generation = c.int()
	r.Attempts = c.int()
	r.FailedAttempts = c.int()
	r.ConsecutiveLost = c.int()
	r.CancelRequested = c.Int() != 0
	r.SetAnswer(c.Text())
	r.Entries = c.Int()
	r.First = c.Int()
	r.CreatedAt = c.date()
	r.FirstDueAt = c.date()
	r.ExpiresAt = c.date()
	r.Namespace = c.Text()
	r.ID = c.Text()
	r.Fingerprint = c.Blob()
	r.URL = c.Text()
	r.Timeout = time.Duration(c.Int()) * time.Millisecond
	r.BodySize = c.Int()
	r.EncodedSpec = c.Blob()
	return r
}

// Body reads the column of the body into r.
func (c *Cells) Body(r *Row) {
	r.Body = c.Blob()
	if r.BodySize == 0 {
		r.Body = []byte{} // the driver gives nil
	}
}

// Names reads the columns of the topic and the lane into r.
func (c *Cells) Names(r *Row) { r.Topic, r.Lane = c.Text(), c.Text() }

// Decode fills in the rest of the Spec.
func (r *Row) Decode() error {
	if err := codec.DecodeSpec(r.EncodedSpec, &r.Spec, nil); err != nil {
		return fmt.Errorf("read job %s: %w", r.ID, err)
	}
	return nil
}

// MoveTo sets the due time, which is the first one too while no attempt has failed.
func (r *Row) MoveTo(due time.Time) {
	r.DueAt = due
	if r.FailedAttempts == 0 && r.ConsecutiveLost == 0 {
		r.FirstDueAt = r.DueAt
	}
}

// Expired reports whether the time to live of a claimed job was over.
func (r *Row) Expired(now clock.Instant) bool { return r.TTLEnd != 0 && r.TTLEnd < now.Millis }

// ExpiresTooEarly reports whether a job would be due after its expiry.
func (r *Row) ExpiresTooEarly() bool { return !r.ExpiresAt.IsZero() && r.ExpiresAt.Before(r.DueAt) }

// View is a job with its state at now.
func (r *Row) View(now clock.Instant) job.Job {
	j := r.Job
	if j.State == job.Scheduled {
		j.State = WaitingState(clock.Millis(j.DueAt), now.Millis)
	}
	return j
}

// WaitingState returns job.Scheduled or job.Ready, which differ by the clock alone.
func WaitingState(due, now int64) job.State {
	if due <= now {
		return job.Ready
	}
	return job.Scheduled
}

// Progress returns what a settlement changes.
func (r *Row) Progress() Progress {
	return Progress{
		Version: r.Version, Attempts: int64(r.Attempts), FailedAttempts: int64(r.FailedAttempts),
		ConsecutiveLost: int64(r.ConsecutiveLost), Entries: r.Entries, First: r.First, Cancel: r.CancelRequested,
		Answer: r.Answer(), BodySize: r.BodySize, Size: r.Size(), Fingerprint: r.Fingerprint,
	}
}
