package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
)

// A row is a job as it is stored. Until decode, its Spec has only what columns hold: name, URL and timeout.
type row struct {
	job.Job
	n           int64
	fingerprint []byte
	entries     int64 // of the record, ever made
	first       int64 // where the first of them is; 0: there is none
	// bodySize is -1 for a body that is nil.
	bodySize int64
	spec     []byte
	ttlEnd   int64 // only of a claim; 0: none
}

// key orders a queue's waiting jobs.
func (r *row) key() key { return key{clock.Millis(r.DueAt), r.n} }

// size is what a job counts for retention by bytes.
func (r *row) size() int64 { return max(r.bodySize, 0) + int64(len(r.URL)) }

// columns are those of a job, in the order in which cells.job reads them.
const columns = `jobs.n, state, due, finished, reason, version, generation, attempts, failed_attempts, consecutive_lost, cancel_requested, status, entries, first,
 created, first_due, expires, jobs.namespace, id, fingerprint, url, timeout, body_size, spec`

// cells are the columns of a result row that have not been read yet. NULL is read as the zero value.
type cells []driver.Value

func (c *cells) next() driver.Value {
	v := (*c)[0]
	*c = (*c)[1:]
	return v
}

func (c *cells) integer() int64  { return db.Int(c.next()) }
func (c *cells) int() int        { return int(c.integer()) }
func (c *cells) text() string    { return db.Text(c.next()) }
func (c *cells) blob() []byte    { return db.Blob(c.next()) }
func (c *cells) date() time.Time { return clock.Time(c.integer()) }

// job reads columns. It cannot fail: moving or removing a job needs no more.
func (c *cells) job() *row {
	r := &row{n: c.integer()}
	r.State = job.State(c.text())
	r.DueAt = c.date()
	r.FinishedAt = c.date()
	r.Reason = policy.Reason(c.text())
	r.Version = c.integer()
	r.Generation = c.int()
	r.Attempts = c.int()
	r.FailedAttempts = c.int()
	r.ConsecutiveLost = c.int()
	r.CancelRequested = c.integer() != 0
	r.Status = c.int()
	r.entries = c.integer()
	r.first = c.integer()
	r.CreatedAt = c.date()
	r.FirstDueAt = c.date()
	r.ExpiresAt = c.date()
	r.Namespace = c.text()
	r.ID = c.text()
	r.fingerprint = c.blob()
	r.URL = c.text()
	r.Timeout = time.Duration(c.integer()) * time.Millisecond
	r.bodySize = c.integer()
	r.spec = c.blob()
	return r
}

// body reads bodyColumn.
func (c *cells) body(r *row) {
	r.Body = c.blob()
	if r.bodySize == 0 {
		r.Body = []byte{} // the driver gives nil
	}
}

// names reads nameColumns.
func (c *cells) names(r *row) { r.Topic, r.Lane = c.text(), c.text() }

// decode fills in the rest of the Spec.
func (r *row) decode() error {
	if err := codec.DecodeSpec(r.spec, &r.Spec, nil); err != nil {
		return fmt.Errorf("read job %s: %w", r.ID, err)
	}
	return nil
}

// encoded is what the caller's goroutine prepares of a registration or an edit, so that the writer only binds it.
type encoded struct {
	spec                    []byte
	timeout, body, external driver.Value
	bodySize                int64
}

func encode(s *job.Spec) encoded {
	rest := *s
	rest.URL = "" // it has a column
	e := encoded{
		spec: codec.AppendSpec(make([]byte, 0, 128), &rest), timeout: db.NullZero(clock.CeilMillis(s.Timeout)), bodySize: int64(len(s.Body)),
	}
	switch {
	case s.Body == nil:
		e.bodySize = -1
	case len(s.Body) > inlineBody:
		e.external = s.Body
	default:
		e.body = s.Body
	}
	return e
}

// encodeJSON is for values that always have a JSON form.
func encodeJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("sqlite: a value without a JSON form: %v", err))
	}
	return string(raw)
}

func encodeAttempt(a *job.Attempt) string { return string(a.JSON()) }
