package response

import (
	"cmp"
	"strconv"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// History writes a job's attempts and its events, oldest first. The first event is the registration.
func (o *Buffer) History(j *job.Job) {
	Objects(o, "attempts", j.History, func(t *job.Attempt) { o.attempt(j, t) })
	Objects(o, "events", append([]job.Event{j.Created()}, j.Events...), func(e *job.Event) { o.Members(e) })
}

func (o *Buffer) attempt(j *job.Job, t *job.Attempt) {
	o.attemptSummary(t, cmp.Or(t.URL, j.AttemptURL()))
	o.headersOrNull("response_headers", t.Header)
	switch text, ok := t.ResponseText(); {
	case ok:
		o.Text("response_body", text)
		o.Null("response_body_base64")
	case len(t.Body) == 0:
		o.nulls("response_body", "response_body_base64")
	default:
		o.Null("response_body")
		o.bytes("response_body_base64", t.Body)
	}
}

// attemptSummary writes an attempt without its response. url is that of its request, if it made one.
func (o *Buffer) attemptSummary(t *job.Attempt, url string) {
	requested := t.Kind == job.KindAttempt || t.Kind == job.KindReleased && t.Duration > 0
	o.Number("n", int64(t.N))
	o.Text("kind", string(t.Kind))
	o.Time("started_at", t.StartedAt)
	if requested || t.Duration > 0 {
		o.millis("duration_ms", t.Duration)
	} else {
		o.Null("duration_ms")
	}
	o.objectOrNull("phases", t.Phases != policy.Phases{}, func() {
		o.millisOrNull("dns_ms", t.Phases.DNS)
		o.millisOrNull("connect_ms", t.Phases.Connect)
		o.millisOrNull("tls_ms", t.Phases.TLS)
		o.millisOrNull("first_byte_ms", t.Phases.FirstByte)
	})
	if !requested {
		url = ""
	}
	o.TextOrNull("url", url)
	o.TextOrNull("remote_addr", t.RemoteAddr)
	o.TextOrNull("process", t.Process)
	o.numberOrNull("status", int64(t.Status))
	o.TextOrNull("verdict", t.Verdict)
	o.TextOrNull("reason", string(t.Reason))
	o.TextOrNull("error", t.Error)
	o.TextOrNull("error_class", string(t.ErrorClass))
}

// millis writes a duration in milliseconds, with one decimal place if it needs one.
func (o *Buffer) millis(name string, d time.Duration) {
	o.Key(name)
	o.b = strconv.AppendFloat(o.b, float64(policy.RoundUp(d)/policy.DurationUnit)/10, 'f', -1, 64)
}

func (o *Buffer) millisOrNull(name string, d time.Duration) {
	if d == 0 {
		o.Null(name)
	} else {
		o.millis(name, d)
	}
}
