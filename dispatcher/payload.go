// This part of the package makes the jobs that report the end of a job or a backlog: pure functions that are given the
// time.
//
// A callback is delivered by a job in the topic job.CallbackTopic, which has that topic's ladder, passes the address
// guard, and is signed with the secrets of the reported job's topic. Its own end is not reported.

package dispatcher

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// newCallback returns the job that delivers a payload to a callback's URL.
func newCallback(to *policy.Callback, namespace, topic string, what any) job.New {
	body, err := marshal(what)
	if err != nil {
		panic("callbacks: a callback always has a JSON form: " + err.Error())
	}
	return job.New{Spec: job.Spec{
		Queue: job.Queue{Namespace: namespace, Topic: job.CallbackTopic},
		URL:   to.URL, Method: cmp.Or(to.Method, http.MethodPost), Header: to.Headers,
		ContentType: "application/json", BodyKind: job.BodyJSON, Body: body,
		Labels: map[string]string{job.LabelTopic: topic},
		Terms:  policy.Terms{Retries: to.Retries, Timeout: to.Timeout},
	}}
}

// marshal is json.Marshal without escapes for HTML: a job's JSON body keeps its characters.
func marshal(what any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(what)
	return bytes.TrimSpace(text.Bytes()), err
}

// milliseconds returns a duration in milliseconds, with one decimal place.
func milliseconds(d time.Duration) float64 {
	return float64(policy.RoundUp(d)/policy.DurationUnit) / 10
}

// headers are headers in the form of the API: one value as a string, several as an array, secret and sealed ones
// redacted; null when there are none. So what is stored encrypted is not in the body of a callback, which is not.
type headers map[string][]string

// MarshalJSON returns that form.
func (h headers) MarshalJSON() ([]byte, error) {
	if len(h) == 0 {
		return []byte("null"), nil
	}
	shown := make(map[string]any, len(h))
	for name, values := range h {
		_, sealed := job.Sealed(values)
		switch {
		case sealed || job.SecretHeader(name):
			shown[name] = job.Redacted
		case len(values) == 1:
			shown[name] = values[0]
		default:
			shown[name] = values
		}
	}
	return marshal(shown)
}

// nonZero returns a pointer to a value; nil for the zero value.
func nonZero[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// timestamp is a time in the API's format: UTC, with milliseconds.
type timestamp time.Time

// MarshalJSON returns RFC 3339 with milliseconds.
func (t timestamp) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, `"`+job.TimeLayout+`"`), nil
}
