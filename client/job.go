package client

import (
	"time"

	"github.com/ringback/ringback/client/internal/wire"
)

// Job is a job to register. Its texts are UTF-8, else it is refused before it is sent; encoding/json would change them.
type Job struct {
	// ID is 1 to 64 of A-Z a-z 0-9 _ : and -, not beginning with rb:. Empty: a new one. Registering a job again under
	// its id changes nothing, and a different job under it is ErrConflict.
	ID    string `json:"id,omitzero"`
	Topic string `json:"topic,omitzero"`
	// Lane is the unit of isolation. Empty: the URL's host:port.
	Lane string `json:"lane,omitzero"`
	// URL is where the job is sent. Empty: the lane's or the topic's, or none if the topic is pulled.
	URL     string  `json:"url,omitzero"`
	Method  string  `json:"method,omitzero"` // empty: POST
	Headers Headers `json:"headers,omitzero"`
	// Body is the body. A json.RawMessage, the bytes of a []byte and what an io.Reader reads (at most MaxBody) are
	// delivered byte for byte, a Text as text/plain, any other value as its JSON, as encoding/json makes it. The
	// content type of bytes is application/octet-stream unless ContentType says otherwise. Nil: no body.
	Body        any    `json:"body" wire:"payload"`
	ContentType string `json:"content_type,omitzero"`
	// Delay or RunAt say when the job is due; neither: now.
	Delay time.Duration `json:"delay,omitzero"`
	RunAt time.Time     `json:"run_at,omitzero"`
	// Retries is the number of requests after the first. Nil: the length of the ladder.
	Retries *int `json:"retries,omitzero"`
	// Ladder has the waits after failed attempts. Empty: the topic's.
	Ladder []time.Duration `json:"ladder,omitzero"`
	// Timeout bounds an attempt, 100 ms to 10 min. Zero: the topic's.
	Timeout time.Duration `json:"timeout,omitzero"`
	// ExpiresIn or ExpiresAt say when the job dies unless it is delivered; neither: never.
	ExpiresIn time.Duration     `json:"expires_in,omitzero"`
	ExpiresAt time.Time         `json:"expires_at,omitzero"`
	Labels    map[string]string `json:"labels,omitzero"`
	// OnDelivered and OnDead are sent when the job ends. Nil: the topic's. NoCallback: none.
	OnDelivered *Callback `json:"on_delivered,omitzero" wire:"none"`
	OnDead      *Callback `json:"on_dead,omitzero" wire:"none"`
}

// MarshalJSON returns the JSON that the API reads. It reads a Body that is an io.Reader. Called directly, not by
// encoding/json, it keeps the bytes of a json.RawMessage.
func (j Job) MarshalJSON() ([]byte, error) { return wire.Encode(j) }

// UnmarshalJSON reads what MarshalJSON returned.
func (j *Job) UnmarshalJSON(data []byte) error { return wire.Decode(data, j) }

// Callback is a request about the end of a job.
type Callback struct {
	URL     string        `json:"url,omitzero" wire:"key"`
	Method  string        `json:"method,omitzero"` // empty: POST
	Headers Headers       `json:"headers,omitzero"`
	Retries *int          `json:"retries,omitzero"` // nil: those of the topic _callbacks
	Timeout time.Duration `json:"timeout,omitzero"`
	Include []string      `json:"include,omitzero"` // body, headers, query
	// Null are the names of members that get their default in PatchTopic, where the callback is a topic's.
	Null []string `json:"-" wire:"nulls"`
}

// MarshalJSON returns the JSON that the API reads; of a callback without a URL null.
func (c Callback) MarshalJSON() ([]byte, error) { return wire.Encode(c) }

// UnmarshalJSON reads a callback, or its URL alone.
func (c *Callback) UnmarshalJSON(data []byte) error { return wire.Decode(data, c) }

// NoCallback returns a callback that switches off the topic's.
func NoCallback() *Callback { return new(Callback) }

// Change is a change of a scheduled or ready job: of the fields that are not zero.
type Change struct {
	URL string `json:"url,omitzero"`
	// Headers replace all.
	Headers     Headers           `json:"headers,omitzero"`
	Body        any               `json:"body" wire:"payload"` // as that of Job
	ContentType string            `json:"content_type,omitzero"`
	Delay       *time.Duration    `json:"delay,omitzero"`
	RunAt       time.Time         `json:"run_at,omitzero"`
	Retries     *int              `json:"retries,omitzero"`
	Ladder      []time.Duration   `json:"ladder,omitzero"`
	Timeout     time.Duration     `json:"timeout,omitzero"`
	ExpiresIn   time.Duration     `json:"expires_in,omitzero"`
	ExpiresAt   time.Time         `json:"expires_at,omitzero"`
	Labels      map[string]string `json:"labels,omitzero"`
	// Null are the names of members that are removed: headers, ladder, timeout, expires_at, labels.
	Null []string `json:"-" wire:"nulls"`
}

// MarshalJSON returns the JSON that the API reads.
func (c Change) MarshalJSON() ([]byte, error) { return wire.Encode(c) }

// Revival says how a job that has ended is sent again. The zero value: now, as it was.
type Revival struct {
	Delay     time.Duration `json:"delay,omitzero"`
	ExpiresIn time.Duration `json:"expires_in,omitzero"` // required if the job's expiry has passed
	URL       string        `json:"url,omitzero"`
	Headers   Headers       `json:"headers,omitzero"` // replace all of the job's
}
