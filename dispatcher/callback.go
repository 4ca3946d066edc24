package dispatcher

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// A callback tells of a job's end. It is a job of its own, in the topic job.CallbackTopic: it has its own ladder and
// record, passes the same guard, and is signed with the secrets of the topic that it tells of. Its end is told to nobody.
type callback struct {
	Type      string      `json:"type"` // job.delivered, job.dead
	Timestamp timestamp   `json:"timestamp"`
	Job       callbackJob `json:"job"`
	// Attempts is the number of attempts made, over all rounds.
	Attempts int               `json:"attempts"`
	Response *callbackResponse `json:"response"` // of the last attempt; null when the job ended without one
}

// callbackJob is what is told of a job.
type callbackJob struct {
	ID         string              `json:"id"`
	Topic      string              `json:"topic"`
	Lane       string              `json:"lane"`
	URL        string              `json:"url,omitempty"` // without its query, unless asked for
	Method     string              `json:"method"`
	Labels     map[string]string   `json:"labels,omitempty"`
	State      job.State           `json:"state"`
	Reason     policy.Reason       `json:"reason,omitempty"`
	Round      int                 `json:"round"`
	CreatedAt  timestamp           `json:"created_at"`
	Headers    map[string][]string `json:"headers,omitempty"`
	Body       json.RawMessage     `json:"body,omitempty"`
	BodyText   *string             `json:"body_text,omitempty"`
	BodyBase64 []byte              `json:"body_base64,omitempty"`
	// BodyOmitted: the body was asked for and left out, because the callback would be larger than a job may be.
	BodyOmitted bool `json:"body_omitted,omitempty"`
}

// callbackResponse is what came of the last attempt.
type callbackResponse struct {
	Status     int                 `json:"status,omitempty"`
	Error      string              `json:"error,omitempty"`
	ErrorClass policy.ErrorClass   `json:"error_class,omitempty"`
	StartedAt  timestamp           `json:"started_at"`
	DurationMS float64             `json:"duration_ms"`
	Headers    map[string][]string `json:"headers,omitempty"`
	Body       *string             `json:"body,omitempty"`
	BodyBase64 []byte              `json:"body_base64,omitempty"`
}

// A timestamp is told as the API tells it: in milliseconds, UTC.
type timestamp time.Time

// MarshalJSON gives RFC 3339 with three digits of a second's parts.
func (m timestamp) MarshalJSON() ([]byte, error) {
	return time.Time(m).UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000Z07:00"`), nil
}

// notifyEnd makes the job that tells of an end, where somebody is to be told.
func (d *Dispatcher) notifyEnd(end pool.End) []store.NewJob {
	to, kind, state := end.Terms.OnDelivered, "job.delivered", job.Delivered
	if end.Verdict.Kind == policy.Dead {
		to, kind, state = end.Terms.OnDead, "job.dead", job.Dead
	}
	h := end.Held
	if to == nil || h.Kind != "" {
		return nil
	}
	made := h.Attempts
	if end.Attempt.Kind == job.KindAttempt {
		made++
	}
	c := callback{
		Type: kind, Timestamp: timestamp(time.Now()), Job: newCallbackJob(&h.Job, end.URL, to.Include), Attempts: made,
		Response: newCallbackResponse(end.Attempt),
	}
	c.Job.State, c.Job.Reason = state, end.Verdict.Reason
	n := newCallback(to, h.Namespace, h.Topic, c)
	if len(n.Body) > job.MaxBody {
		c.Job.Body, c.Job.BodyText, c.Job.BodyBase64, c.Job.BodyOmitted = nil, nil, nil, true
		n = newCallback(to, h.Namespace, h.Topic, c)
	}
	n.ID, n.Kind, n.Origin = job.CallbackID(h.Job), job.KindCallback, h.ID
	return []store.NewJob{d.outboxEntry(n)}
}

// outboxEntry is the outbox's entry for a callback.
func (d *Dispatcher) outboxEntry(n job.New) store.NewJob {
	return store.NewJob{New: n, Fingerprint: codec.Fingerprint(&n), MaxAge: d.policies.Topic(n.Namespace, n.Topic).MaxAge}
}

// newCallback is the job that tells something to whom a policy names.
func newCallback(to *policy.Callback, namespace, topic string, what any) job.New {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // a job's body keeps its signs, if not its white space
	if err := encoder.Encode(what); err != nil {
		panic("dispatcher: a callback always has a JSON form: " + err.Error())
	}
	return job.New{Spec: job.Spec{
		Queue: job.Queue{Namespace: namespace, Topic: job.CallbackTopic, Lane: laneOf(to.URL)},
		URL:   to.URL, Method: cmp.Or(to.Method, http.MethodPost), Header: to.Headers,
		ContentType: "application/json", BodyKind: job.BodyJSON, Body: bytes.TrimSpace(body.Bytes()),
		Labels: map[string]string{job.LabelTopic: topic},
		Terms:  policy.Terms{Retries: to.Retries, Timeout: to.Timeout},
	}}
}

// newCallbackJob says of a job what its owner may be told, and what was asked for beyond.
func newCallbackJob(j *job.Job, target string, include []string) callbackJob {
	t := callbackJob{
		ID: j.ID, Topic: j.Topic, Lane: j.Lane, URL: target, Method: j.Method, Labels: j.Labels, Round: j.Generation,
		CreatedAt: timestamp(j.CreatedAt),
	}
	if !slices.Contains(include, policy.IncludeQuery) {
		t.URL = withoutQuery(t.URL)
	}
	if slices.Contains(include, policy.IncludeHeaders) {
		t.Headers = redactHeaders(j.Header)
	}
	if slices.Contains(include, policy.IncludeBody) {
		switch {
		case j.BodyKind == job.BodyNone:
		case j.BodyKind == job.BodyJSON && json.Valid(j.Body):
			t.Body = j.Body
		case j.BodyKind == job.BodyText && utf8.Valid(j.Body):
			t.BodyText = new(string(j.Body))
		default:
			t.BodyBase64 = j.Body
		}
	}
	return t
}

// redacted replaces the values of secret headers.
const redacted = "[redacted]"

// redactHeaders returns headers with the values of those that carry secrets replaced: they were for the receiver alone.
func redactHeaders(header map[string][]string) map[string][]string {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(header)), job.SecretHeader) {
		return header
	}
	shown := maps.Clone(header)
	for name := range header {
		if job.SecretHeader(name) {
			shown[name] = []string{redacted}
		}
	}
	return shown
}

// withoutQuery is a URL up to its query.
func withoutQuery(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	u.RawQuery, u.ForceQuery = "", false
	return u.String()
}

// newCallbackResponse is what an attempt came to; nil when there was none.
func newCallbackResponse(a job.Attempt) *callbackResponse {
	if a.Kind == "" {
		return nil
	}
	r := &callbackResponse{
		Status: a.Status, Error: a.Error, ErrorClass: a.ErrorClass, StartedAt: timestamp(a.StartedAt), Headers: redactHeaders(a.Header),
		DurationMS: float64(a.Duration.Microseconds()) / 1000,
	}
	switch {
	case len(a.Body) == 0:
	case utf8.Valid(a.Body):
		r.Body = new(string(a.Body))
	default:
		r.BodyBase64 = a.Body
	}
	return r
}
