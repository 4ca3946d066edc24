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

// callback is the payload that reports a job's end. It is delivered by a job in the topic job.CallbackTopic, which has that
// topic's ladder, passes the address guard, and is signed with the secrets of the reported job's topic. The end of a
// callback's job is not reported.
type callback struct {
	Type      string      `json:"type"` // job.delivered, job.dead
	Timestamp timestamp   `json:"timestamp"`
	Job       callbackJob `json:"job"`
	// Attempts is the number of attempts made, over all revivals.
	Attempts int               `json:"attempts"`
	Response *callbackResponse `json:"response"` // of the last attempt; null when the job ended without one
}

// callbackJob is what a callback contains of its job.
type callbackJob struct {
	ID         string              `json:"id"`
	Topic      string              `json:"topic"`
	Lane       string              `json:"lane"`
	URL        string              `json:"url,omitempty"` // without its query, unless included
	Method     string              `json:"method"`
	Labels     map[string]string   `json:"labels,omitempty"`
	State      job.State           `json:"state"`
	Reason     policy.Reason       `json:"reason,omitempty"`
	Generation int                 `json:"generation"`
	CreatedAt  timestamp           `json:"created_at"`
	Headers    map[string][]string `json:"headers,omitempty"`
	Body       json.RawMessage     `json:"body,omitempty"`
	BodyText   *string             `json:"body_text,omitempty"`
	BodyBase64 []byte              `json:"body_base64,omitempty"`
	// BodyOmitted reports that the included body was omitted, because the callback would be larger than a job may be.
	BodyOmitted bool `json:"body_omitted,omitempty"`
}

// callbackResponse is the result of the last attempt.
type callbackResponse struct {
	Status     int                 `json:"status,omitempty"`
	Error      string              `json:"error,omitempty"`
	ErrorClass policy.ErrorClass   `json:"error_class,omitempty"`
	StartedAt  timestamp           `json:"started_at"`
	DurationMS int64               `json:"duration_ms"`
	Headers    map[string][]string `json:"headers,omitempty"`
	Body       *string             `json:"body,omitempty"`
	BodyBase64 []byte              `json:"body_base64,omitempty"`
}

// timestamp is a time in the API's format: UTC, with milliseconds.
type timestamp time.Time

// MarshalJSON returns RFC 3339 with milliseconds.
func (t timestamp) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000Z07:00"`), nil
}

// notifyEnd returns the callback about a job's end; none if the policy has no callback for it.
func (d *Dispatcher) notifyEnd(end pool.EndedJob) []store.NewJob {
	to, kind, state := end.Terms.OnDelivered, "job.delivered", job.Delivered
	if end.Verdict.Kind == policy.Dead {
		to, kind, state = end.Terms.OnDead, "job.dead", job.Dead
	}
	ended := end.Job
	if to == nil || ended.Kind != "" {
		return nil
	}
	made := ended.Attempts
	if end.Attempt.Kind == job.KindAttempt {
		made++
	}
	c := callback{
		Type: kind, Timestamp: timestamp(time.Now()), Job: newCallbackJob(&ended.Job, end.URL, to.Include), Attempts: made,
		Response: newCallbackResponse(end.Attempt),
	}
	c.Job.State, c.Job.Reason = state, end.Verdict.Reason
	n := newCallback(to, ended.Namespace, ended.Topic, c)
	if len(n.Body) > job.MaxBody {
		c.Job.Body, c.Job.BodyText, c.Job.BodyBase64, c.Job.BodyOmitted = nil, nil, nil, true
		n = newCallback(to, ended.Namespace, ended.Topic, c)
	}
	n.ID, n.Kind, n.Origin = job.CallbackID(ended.Job), job.KindCallback, ended.ID
	return []store.NewJob{d.outboxEntry(n)}
}

// outboxEntry returns the outbox entry of a callback.
func (d *Dispatcher) outboxEntry(n job.New) store.NewJob {
	return store.NewJob{New: n, Fingerprint: codec.Fingerprint(&n), MaxAge: d.policies.Get(n.Namespace, n.Topic).Resolved.MaxAge}
}

// newCallback returns the job that delivers a payload to a callback's URL.
func newCallback(to *policy.Callback, namespace, topic string, what any) job.New {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // a job's JSON body keeps its characters
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

// newCallbackJob returns the fields of a job in a callback: the default ones, and those in include.
func newCallbackJob(j *job.Job, target string, include []string) callbackJob {
	t := callbackJob{
		ID: j.ID, Topic: j.Topic, Lane: j.Lane, URL: target, Method: j.Method, Labels: j.Labels, Generation: j.Generation,
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

// redactHeaders returns headers with the values of secret headers replaced.
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

// withoutQuery returns a URL without its query.
func withoutQuery(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	u.RawQuery, u.ForceQuery = "", false
	return u.String()
}

// newCallbackResponse returns the result of an attempt; nil if there was none.
func newCallbackResponse(a job.Attempt) *callbackResponse {
	if a.Kind == "" {
		return nil
	}
	r := &callbackResponse{
		Status: a.Status, Error: a.Error, ErrorClass: a.ErrorClass, StartedAt: timestamp(a.StartedAt), Headers: redactHeaders(a.Header),
		DurationMS: a.Duration.Round(time.Millisecond).Milliseconds(),
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
