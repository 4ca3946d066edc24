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

// ScheduleJob is what each tick registers.
type ScheduleJob struct {
	Topic       string            `json:"topic,omitzero"`
	Lane        string            `json:"lane,omitzero"`
	URL         string            `json:"url,omitzero"`
	Method      string            `json:"method,omitzero"`
	Headers     Headers           `json:"headers,omitzero"`
	Body        any               `json:"body" wire:"payload"` // as that of Job
	ContentType string            `json:"content_type,omitzero"`
	Retries     *int              `json:"retries,omitzero"`
	Ladder      []time.Duration   `json:"ladder,omitzero"`
	Timeout     time.Duration     `json:"timeout,omitzero"`
	ExpiresIn   time.Duration     `json:"expires_in,omitzero"`
	Labels      map[string]string `json:"labels,omitzero"`
	OnDelivered *Callback         `json:"on_delivered,omitzero" wire:"none"`
	OnDead      *Callback         `json:"on_dead,omitzero" wire:"none"`
}

// MarshalJSON returns the JSON that the API reads.
func (j ScheduleJob) MarshalJSON() ([]byte, error) { return wire.Encode(j) }

// UnmarshalJSON reads what MarshalJSON returned.
func (j *ScheduleJob) UnmarshalJSON(data []byte) error { return wire.Decode(data, j) }

// Revival says how a job that has ended is sent again. The zero value: now, as it was.
type Revival struct {
	Delay     time.Duration `json:"delay,omitzero"`
	ExpiresIn time.Duration `json:"expires_in,omitzero"` // required if the job's expiry has passed
	URL       string        `json:"url,omitzero"`
	Headers   Headers       `json:"headers,omitzero"` // replace all of the job's
}

// State is the state of a job. Servers may have others than these.
type State string

// The states of a job.
const (
	Scheduled State = "scheduled"
	Ready     State = "ready"
	Running   State = "running"
	Delivered State = "delivered"
	Dead      State = "dead"
	Cancelled State = "cancelled"
)

// Ended reports whether a job of the state is delivered, dead or cancelled.
func (s State) Ended() bool { return s == Delivered || s == Dead || s == Cancelled }

// JobInfo is a job as the server shows it. What a response does not have is zero: lists have no body, attempts and
// events; answers to changes have no attempts and events.
type JobInfo struct {
	Answer

	ID          string            `json:"id"`
	Topic       string            `json:"topic"`
	Lane        string            `json:"lane"`
	URL         string            `json:"url"` // empty: the lane's or the topic's
	Method      string            `json:"method"`
	Headers     Headers           `json:"headers"` // secret ones are [redacted]
	ContentType string            `json:"content_type"`
	Retries     *int              `json:"retries"`
	Ladder      []time.Duration   `json:"ladder"`
	Timeout     time.Duration     `json:"timeout"`
	ExpiresAt   time.Time         `json:"expires_at"`
	Labels      map[string]string `json:"labels"`
	OnDelivered *Callback         `json:"on_delivered"`
	OnDead      *Callback         `json:"on_dead"`
	// Body is the body that is delivered, byte for byte.
	Body []byte `json:"body" wire:"payload"`

	Kind   string `json:"kind"`   // of a job that Ringback created: callback, backlog, work or schedule
	Origin string `json:"origin"` // the job or the topic that such a job is about
	// State is empty if a registration waited for the end, and the state could not be read: Get shows it.
	State           State     `json:"state"`
	Reason          string    `json:"reason"` // why it is dead or cancelled
	AttemptsMade    int       `json:"attempts_made"`
	LastStatus      int       `json:"last_status"`      // of the last attempt; zero: no complete answer
	LastErrorClass  string    `json:"last_error_class"` // why; empty: there was one, or no attempt
	NextAttemptAt   time.Time `json:"next_attempt_at"`
	CreatedAt       time.Time `json:"created_at"`
	EndedAt         time.Time `json:"ended_at"`
	CallbackID      string    `json:"callback_id"`
	Revision        int64     `json:"revision"` // for IfRevision
	Generation      int       `json:"generation"`
	CancelRequested bool      `json:"cancel_requested"`

	Effective   *Effective  `json:"effective"`
	RetriesLeft *int        `json:"retries_left"`
	WaitingFor  *WaitingFor `json:"waiting_for"`
	Attempts    []Attempt   `json:"attempts"` // oldest first, the newest 40
	Events      []Event     `json:"events"`   // oldest first
	Durability  *Durability `json:"durability"`
}

// UnmarshalJSON reads a job as responses and callbacks have it.
func (j *JobInfo) UnmarshalJSON(data []byte) error { return wire.Decode(data, j) }

// Durability is how durable a change was when it was answered, if the server waits for more than its store.
type Durability struct {
	Replicas int  `json:"replicas"`
	Synced   bool `json:"synced"`
}

// Effective is what applies to the next attempt.
type Effective struct {
	URL      string          `json:"url"`
	Ladder   []time.Duration `json:"ladder"`
	Retries  int             `json:"retries"`
	Timeout  time.Duration   `json:"timeout"`
	MaxAge   time.Duration   `json:"max_age"` // zero: none
	Success  *Success        `json:"success"`
	GiveUpOn []string        `json:"give_up_on"`
}

// WaitingFor is what keeps an unfinished job from running.
type WaitingFor struct {
	Obstacle

	// due, retry, end, paused, order, lane_full, topic_full, rate, breaker, retry_after, cooldown, secret, worker
	Kind string `json:"kind"`
}

// Obstacle is what keeps a job, or the jobs of a lane, from running.
type Obstacle struct {
	// Code is breaker_open, breaker_half_open, retry_after, failing, cooldown, order, topic_paused, lane_paused,
	// lane_full, lane_rate or topic_rate; of a job also due, retry, end, secret, topic_full or worker. More may follow.
	Code   string    `json:"code"`
	Scope  string    `json:"scope"`  // job, lane or topic
	Detail string    `json:"detail"` // a sentence that says what to do
	Facts  string    `json:"facts"`  // the same without what to do
	Remedy *Remedy   `json:"remedy"` // nil: no request ends it
	Until  time.Time `json:"until"`  // when it ends by itself; zero: not known
	Since  time.Time `json:"since"`  // of a pause, as By and Note, or of a failing receiver
	By     string    `json:"by"`
	Note   string    `json:"note"`
}

// Remedy is a request about a job, a lane or a topic.
type Remedy struct {
	Action string `json:"action"` // run, edit, lease, resume, set or put: more may follow
	Topic  string `json:"topic"`
	Lane   string `json:"lane"` // empty: the whole topic
	ID     string `json:"id"`   // of a job; empty: its lane or topic
}

// AttemptSummary is an attempt without its response.
type AttemptSummary struct {
	N          int       `json:"n"`    // from 1
	Kind       string    `json:"kind"` // attempt, lost, released
	StartedAt  time.Time `json:"started_at"`
	DurationMS *float64  `json:"duration_ms"`
	Phases     *Phases   `json:"phases"`
	URL        string    `json:"url"`
	RemoteAddr string    `json:"remote_addr"`
	Process    string    `json:"process"`
	Status     int       `json:"status"`  // zero: no answer
	Verdict    string    `json:"verdict"` // delivered, again, dead, released
	Reason     string    `json:"reason"`
	Error      string    `json:"error"`
	ErrorClass string    `json:"error_class"`
}

// Attempt is one request, lease or call of a function.
type Attempt struct {
	AttemptSummary

	ResponseHeaders    Headers `json:"response_headers"`
	ResponseBody       string  `json:"response_body"`        // at most 1 KiB
	ResponseBodyBase64 []byte  `json:"response_body_base64"` // if it is not text
}

// Phases are the durations of a request's phases in milliseconds; nil: it did not take place.
type Phases struct {
	DNS       *float64 `json:"dns_ms"`
	Connect   *float64 `json:"connect_ms"`
	TLS       *float64 `json:"tls_ms"`
	FirstByte *float64 `json:"first_byte_ms"`
}

// Event is what a client did to a job.
type Event struct {
	At     time.Time `json:"at"`
	Kind   string    `json:"kind"`   // created, edited, run, revived, cancelled
	Fields []string  `json:"fields"` // that were edited
	Actor  string    `json:"actor"`
}
