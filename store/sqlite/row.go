package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// A row is a job as it is stored.
type row struct {
	job.Job
	n, q    int64
	print   []byte
	entries int64 // of the record, ever made
	first   int64 // where the first of them is; 0: among the others
	// bodySize is -1 for a body that is nil.
	bodySize int64
}

// key orders a queue's waiting jobs.
func (r *row) key() key { return key{millis(r.DueAt), r.n} }

// size is what a job counts for retention by bytes.
func (r *row) size() int64 { return max(r.bodySize, 0) + int64(len(r.URL)) }

// columnCount is how many columns there are in columns; the body follows where it is read.
const columnCount = 34

// decodeHead reads the columns that need no parsing, which cannot fail: all that moving or removing a job needs.
func decodeHead(v []driver.Value) *row {
	r := &row{n: integer(v[0]), q: integer(v[1]), entries: integer(v[12]), first: integer(v[33]), print: blob(v[18]), bodySize: integer(v[24])}
	r.Progress = job.Progress{
		State:           job.State(text(v[2])),
		DueAt:           date(integer(v[3])),
		FinishedAt:      date(integer(v[4])),
		Reason:          policy.Reason(text(v[5])),
		Version:         integer(v[6]),
		Generation:      int(integer(v[7])),
		Attempts:        int(integer(v[8])),
		FailedAttempts:  int(integer(v[9])),
		ConsecutiveLost: int(integer(v[10])),
		Status:          int(integer(v[31])),
		CancelRequested: integer(v[11]) != 0,
		CreatedAt:       date(integer(v[13])),
		FirstDueAt:      date(integer(v[14])),
		ExpiresAt:       date(integer(v[15])),
	}
	r.Namespace, r.ID = text(v[16]), text(v[17])
	r.URL, r.Method = text(v[19]), text(v[20])
	r.ContentType, r.BodyKind = text(v[22]), job.BodyKind(integer(v[23]))
	r.Kind, r.Origin = text(v[29]), text(v[30])
	return r
}

// decode reads a row of columns. withBody says that the body follows.
func decode(v []driver.Value, withBody bool) (*row, error) {
	r := decodeHead(v)
	if withBody {
		r.Body = blob(v[columnCount])
		if r.bodySize == 0 {
			r.Body = []byte{} // the driver gives nil
		}
	}
	if v[27] != nil {
		r.Retries = new(int(integer(v[27])))
	}
	if err := decodeText(r, v); err != nil {
		return nil, fmt.Errorf("read job %s: %w", r.ID, err)
	}
	return r, nil
}

// decodeText reads the columns that have a form of their own.
func decodeText(r *row, v []driver.Value) error {
	for _, part := range []struct {
		column int
		into   any
	}{{21, &r.Header}, {25, &r.Labels}} {
		if v[part.column] != nil {
			if err := json.Unmarshal([]byte(text(v[part.column])), part.into); err != nil {
				return err
			}
		}
	}
	if v[26] != nil {
		ladder, err := decodeLadder(text(v[26]))
		if err != nil {
			return err
		}
		r.Ladder = ladder
	}
	if v[28] != nil {
		timeout, err := time.ParseDuration(text(v[28]))
		if err != nil {
			return err
		}
		r.Timeout = timeout
	}
	if v[32] != nil {
		var told callbacks
		if err := json.Unmarshal([]byte(text(v[32])), &told); err != nil {
			return err
		}
		r.OnDelivered, r.OnDead = told.OnDelivered, told.OnDead
	}
	return nil
}

// callbacks are a job's own, as they are stored; few jobs have any.
type callbacks struct {
	OnDelivered *policy.Callback `json:"on_delivered,omitempty"`
	OnDead      *policy.Callback `json:"on_dead,omitempty"`
}

// encoded is what the caller's goroutine prepares of a registration or an edit, so that the writer only binds it.
type encoded struct {
	headers, labels, ladder, retries, timeout, callbacks driver.Value
	body, external                                       driver.Value
	bodySize                                             int64
}

func encode(s *job.Spec) encoded {
	e := encoded{bodySize: int64(len(s.Body))}
	if s.Header != nil {
		e.headers = encodeJSON(s.Header)
	}
	if s.Labels != nil {
		e.labels = encodeJSON(s.Labels)
	}
	if s.Ladder != nil {
		e.ladder = encodeLadder(s.Ladder)
	}
	if s.Retries != nil {
		e.retries = int64(*s.Retries)
	}
	if s.Timeout != 0 {
		e.timeout = s.Timeout.String()
	}
	if s.OnDelivered != nil || s.OnDead != nil {
		e.callbacks = encodeJSON(callbacks{s.OnDelivered, s.OnDead})
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

// A ladder is stored as JSON of Go durations: ["15s","3m0s"].
func encodeLadder(l policy.Ladder) string {
	rungs := make([]string, len(l))
	for i, rung := range l {
		rungs[i] = rung.String()
	}
	return encodeJSON(rungs)
}

func decodeLadder(s string) (policy.Ladder, error) {
	var rungs []string
	if err := json.Unmarshal([]byte(s), &rungs); err != nil {
		return nil, err
	}
	ladder := make(policy.Ladder, len(rungs))
	for i, rung := range rungs {
		wait, err := time.ParseDuration(rung)
		if err != nil {
			return nil, err
		}
		ladder[i] = wait
	}
	return ladder, nil
}

// A birth is an outbox entry as it is stored: every field by name, so that none is lost or redacted on the way.
type birth struct {
	Namespace   string              `json:"namespace"`
	ID          string              `json:"id"`
	Topic       string              `json:"topic"`
	Lane        string              `json:"lane"`
	URL         string              `json:"url,omitempty"`
	Method      string              `json:"method,omitempty"`
	Header      map[string][]string `json:"headers,omitzero"`
	ContentType string              `json:"content_type,omitempty"`
	BodyKind    job.BodyKind        `json:"body_kind,omitempty"`
	Body        []byte              `json:"body,omitzero"`
	Labels      map[string]string   `json:"labels,omitzero"`
	Ladder      policy.Ladder       `json:"ladder,omitzero"`
	Retries     *int                `json:"retries,omitempty"`
	Timeout     time.Duration       `json:"timeout,omitempty"`
	OnDelivered *policy.Callback    `json:"on_delivered,omitempty"`
	OnDead      *policy.Callback    `json:"on_dead,omitempty"`
	Kind        string              `json:"kind,omitempty"`
	Origin      string              `json:"origin,omitempty"`
	Delay       time.Duration       `json:"delay,omitempty"`
	RunAt       time.Time           `json:"run_at,omitzero"`
	ExpiresIn   time.Duration       `json:"expires_in,omitempty"`
	ExpiresAt   time.Time           `json:"expires_at,omitzero"`
	Print       []byte              `json:"print,omitzero"`
	MaxAge      time.Duration       `json:"max_age,omitempty"`
}

func encodeBirth(e store.NewJob) string {
	return encodeJSON(birth{
		e.Namespace, e.ID, e.Topic, e.Lane, e.URL, e.Method, e.Header, e.ContentType, e.BodyKind, e.Body, e.Labels,
		e.Ladder, e.Retries, e.Timeout, e.OnDelivered, e.OnDead, e.Kind, e.Origin, e.Delay, e.RunAt, e.ExpiresIn, e.ExpiresAt, e.Fingerprint, e.MaxAge,
	})
}

func decodeBirth(s string) (store.NewJob, error) {
	var b birth
	if err := json.Unmarshal([]byte(s), &b); err != nil {
		return store.NewJob{}, fmt.Errorf("read an outbox entry: %w", err)
	}
	return store.NewJob{
		New: job.New{
			Spec: job.Spec{
				ID: b.ID, Queue: job.Queue{Namespace: b.Namespace, Topic: b.Topic, Lane: b.Lane},
				URL: b.URL, Method: b.Method, Header: b.Header, ContentType: b.ContentType, BodyKind: b.BodyKind, Body: b.Body,
				Labels: b.Labels, Kind: b.Kind, Origin: b.Origin,
				Terms: policy.Terms{
					Ladder: b.Ladder, Retries: b.Retries, Timeout: b.Timeout, OnDelivered: b.OnDelivered, OnDead: b.OnDead,
				},
			},
			Delay: b.Delay, RunAt: b.RunAt, ExpiresIn: b.ExpiresIn, ExpiresAt: b.ExpiresAt,
		},
		Fingerprint: b.Print, MaxAge: b.MaxAge,
	}, nil
}
