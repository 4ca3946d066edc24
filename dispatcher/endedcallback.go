package dispatcher

import (
	"encoding/json"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
)

// endPayload is the payload that reports a job's end.
type endPayload struct {
	Type      string           `json:"type"` // job.delivered, job.dead
	Timestamp timestamp        `json:"timestamp"`
	Job       callbackJob      `json:"job"`
	Attempt   *callbackAttempt `json:"attempt"` // the last one; null when the job ended without one
}

// callbackJob is what a callback contains of its job, in the form of the API. Nil: none, or not included.
type callbackJob struct {
	ID           string            `json:"id"`
	Topic        string            `json:"topic"`
	Lane         string            `json:"lane"`
	URL          *string           `json:"url"` // without its query, unless included
	Method       string            `json:"method"`
	Headers      headers           `json:"headers"`
	ContentType  *string           `json:"content_type"`
	Labels       map[string]string `json:"labels"`
	State        job.State         `json:"state"`
	Reason       *policy.Reason    `json:"reason"`
	AttemptsMade int               `json:"attempts_made"`
	LastStatus   *int              `json:"last_status"`
	// LastErrorClass is beside LastStatus: one of them is nil.
	LastErrorClass *policy.ErrorClass `json:"last_error_class"`
	CreatedAt      timestamp          `json:"created_at"`
	Generation     int                `json:"generation"`
	Body           json.RawMessage    `json:"body"`
	BodyText       *string            `json:"body_text"`
	BodyBase64     []byte             `json:"body_base64"`
	// BodyOmitted reports that the included body was omitted, because the callback would be larger than a job may be.
	BodyOmitted bool `json:"body_omitted"`
}

// callbackAttempt is the last attempt, in the form of the API.
type callbackAttempt struct {
	N                  int                `json:"n"`
	Kind               job.AttemptKind    `json:"kind"`
	StartedAt          timestamp          `json:"started_at"`
	DurationMS         *float64           `json:"duration_ms"`
	Phases             *callbackPhases    `json:"phases"`
	URL                *string            `json:"url"` // without its query, unless included
	RemoteAddr         *string            `json:"remote_addr"`
	Process            *string            `json:"process"`
	Status             *int               `json:"status"`
	Verdict            *string            `json:"verdict"`
	Reason             *policy.Reason     `json:"reason"`
	Error              *string            `json:"error"`
	ErrorClass         *policy.ErrorClass `json:"error_class"`
	ResponseHeaders    headers            `json:"response_headers"`
	ResponseBody       *string            `json:"response_body"`
	ResponseBodyBase64 []byte             `json:"response_body_base64"`
}

// callbackPhases are the phases of an attempt; nil: the phase did not take place.
type callbackPhases struct {
	DNS       *float64 `json:"dns_ms"`
	Connect   *float64 `json:"connect_ms"`
	TLS       *float64 `json:"tls_ms"`
	FirstByte *float64 `json:"first_byte_ms"`
}

// endedCallback returns the callback about a job's end, without a lane; not ok: the job's policy has none for it. A
// callback of the job's own does not tell the receiver that its topic or lane names: whoever registered the job may not
// read their settings.
func endedCallback(end *pool.AttemptEvent, now time.Time) (n job.New, ok bool) {
	ended := end.Job
	to, own, kind, state := end.Terms.OnDelivered, ended.OnDelivered, "job.delivered", job.Delivered
	if end.Verdict.Kind == policy.Dead {
		to, own, kind, state = end.Terms.OnDead, ended.OnDead, "job.dead", job.Dead
	}
	if to == nil || ended.Kind != "" {
		return job.New{}, false
	}
	attempt, progress := end.Record, ended.Progress
	if attempt.Kind == job.KindAttempt {
		progress.Attempts++
		progress.SetAnswer(attempt.Answer())
	}
	c := endPayload{Type: kind, Timestamp: timestamp(now), Job: newCallbackJob(&ended.Job, end.URL, to.Include)}
	if own != nil && ended.URL == "" {
		c.Job.Lane = ended.LaneWithoutHost()
		if end.URL != "" {
			c.Job.URL = new(job.Redacted)
		}
		if attempt.URL != "" {
			attempt.HideReceiver(false)
		}
	}
	c.Attempt = newCallbackAttempt(&attempt, c.Job.URL)
	c.Job.State, c.Job.Reason, c.Job.AttemptsMade = state, nonZero(end.Verdict.Reason), progress.Attempts
	c.Job.LastStatus, c.Job.LastErrorClass = nonZero(progress.Status), nonZero(progress.ErrorClass)
	n = newCallback(to, ended.Namespace, ended.Topic, c)
	if len(n.Body) > job.MaxBody {
		c.Job.Body, c.Job.BodyText, c.Job.BodyBase64, c.Job.BodyOmitted = nil, nil, nil, true
		n = newCallback(to, ended.Namespace, ended.Topic, c)
	}
	n.ID, n.Kind, n.Origin = job.CallbackID(ended.Job), job.KindCallback, ended.ID
	return n, true
}

// newCallbackJob returns the fields of a job in a callback: the default ones, and those in include.
func newCallbackJob(j *job.Job, target string, include []string) callbackJob {
	t := callbackJob{
		ID: j.ID, Topic: j.Topic, Lane: j.Lane, Method: j.Method, ContentType: nonZero(j.ContentType),
		Generation: j.Generation, CreatedAt: timestamp(j.CreatedAt),
	}
	if len(j.Labels) > 0 {
		t.Labels = j.Labels
	}
	if !slices.Contains(include, policy.IncludeQuery) {
		target = withoutQuery(target)
	}
	t.URL = nonZero(target)
	if slices.Contains(include, policy.IncludeHeaders) {
		t.Headers = j.Header
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

// withoutQuery returns a URL without its query.
func withoutQuery(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	u.RawQuery, u.ForceQuery = "", false
	return u.String()
}

// newCallbackAttempt returns an attempt at a URL; nil if there was none.
func newCallbackAttempt(a *job.Attempt, target *string) *callbackAttempt {
	if a.Kind == "" {
		return nil
	}
	shown := &callbackAttempt{
		N: a.N, Kind: a.Kind, StartedAt: timestamp(a.StartedAt), RemoteAddr: nonZero(a.RemoteAddr),
		Process: nonZero(a.Process),
		Status:  nonZero(a.Status), Verdict: nonZero(a.Verdict), Reason: nonZero(a.Reason), Error: nonZero(a.Error),
		ErrorClass: nonZero(a.ErrorClass), ResponseHeaders: a.Header,
	}
	if a.Kind == job.KindAttempt || a.Duration > 0 {
		shown.DurationMS, shown.URL = new(milliseconds(a.Duration)), target
	}
	if p := a.Phases; p != (policy.Phases{}) {
		shown.Phases = &callbackPhases{
			DNS: nonZero(milliseconds(p.DNS)), Connect: nonZero(milliseconds(p.Connect)),
			TLS: nonZero(milliseconds(p.TLS)), FirstByte: nonZero(milliseconds(p.FirstByte)),
		}
	}
	if text, ok := a.ResponseText(); ok {
		shown.ResponseBody = &text
	} else if len(a.Body) > 0 {
		shown.ResponseBodyBase64 = a.Body
	}
	return shown
}
