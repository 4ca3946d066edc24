package api

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ringback/ringback/job"
)

// job writes the members of a job but its body and its record: what was asked for, then how far it has come.
func (o *out) job(j *job.Job) {
	o.text("id", j.ID)
	o.text("topic", j.Topic)
	o.text("lane", j.Lane)
	o.said("url", j.URL)
	o.said("method", j.Method)
	if len(j.Header) > 0 {
		o.headers("headers", j.Header)
	}
	o.said("content_type", j.ContentType)
	if j.Retries != nil {
		o.number("retries", int64(*j.Retries))
	}
	if len(j.Ladder) > 0 {
		o.durations("ladder", j.Ladder)
	}
	if j.Timeout > 0 {
		o.duration("timeout", j.Timeout)
	}
	o.time("expires_at", j.ExpiresAt)
	if len(j.Labels) > 0 {
		o.labels("labels", j.Labels)
	}
	if j.OnDelivered != nil {
		o.callback("on_delivered", j.OnDelivered)
	}
	if j.OnDead != nil {
		o.callback("on_dead", j.OnDead)
	}
	o.said("kind", j.Kind)
	o.said("origin", j.Origin)

	o.text("state", string(j.State))
	o.said("reason", string(j.Reason))
	o.number("attempts_made", int64(j.Attempts))
	if j.Status > 0 {
		o.number("last_status", int64(j.Status))
	}
	if j.State == job.Scheduled || j.State == job.Ready {
		o.time("next_attempt_at", j.DueAt)
	}
	o.time("created_at", j.CreatedAt)
	o.time("finished_at", j.FinishedAt)
	o.said("callback_id", j.CallbackID)
	o.number("version", j.Version)
	o.number("round", int64(j.Generation))
	if j.CancelRequested {
		o.flag("cancel_requested", true)
	}
}

// durability writes how durable a change was when it was answered, where the store was told to see to it.
func (o *out) durability(reached *job.Durability) {
	if reached == nil {
		return
	}
	o.object("durability")
	o.number("replicas", int64(reached.Replicas))
	o.flag("synced", reached.Synced)
	o.close()
}

// body writes a job's body as it was sent.
func (o *out) body(j *job.Job) {
	switch {
	case j.BodyKind == job.BodyNone:
	case j.BodyKind == job.BodyJSON && json.Valid(j.Body):
		o.key("body")
		if j.Kind == "" {
			o.b = append(o.b, j.Body...)
		} else {
			o.told(j.Body)
		}
	case j.BodyKind == job.BodyText && utf8.Valid(j.Body):
		o.text("body_text", string(j.Body))
	default:
		o.bytes("body_base64", j.Body)
	}
}

// bytes writes base64.
func (o *out) bytes(name string, b []byte) {
	o.key(name)
	o.b = append(o.b, '"')
	o.b = base64.StdEncoding.AppendEncode(o.b, b)
	o.b = append(o.b, '"')
}

// attempts writes a job's record, oldest first.
func (o *out) attempts(all []job.Attempt) {
	o.array("attempts")
	for i := range all {
		o.open()
		o.attempt(&all[i])
		o.close()
	}
	o.closeArray()
}

func (o *out) attempt(t *job.Attempt) {
	o.number("n", int64(t.N))
	o.text("kind", string(t.Kind))
	o.time("started_at", t.StartedAt)
	if t.Kind == job.KindAttempt || t.Duration > 0 {
		o.number("duration_ms", int64(t.Duration.Round(time.Millisecond)/time.Millisecond))
	}
	if t.Status > 0 {
		o.number("status", int64(t.Status))
	}
	o.said("verdict", t.Verdict)
	o.said("reason", string(t.Reason))
	o.said("error", t.Error)
	o.said("error_class", string(t.ErrorClass))
	if len(t.Header) > 0 {
		o.headers("response_headers", t.Header)
	}
	if len(t.Body) == 0 {
		return
	}
	if text, ok := asText(t.Body); ok {
		o.text("response_body", text)
	} else {
		o.bytes("response_body_base64", t.Body)
	}
}

// asText gives an answer's body as text, if it is any. A character that the cap cut in two is left out.
func asText(body []byte) (string, bool) {
	if len(body) >= job.MaxAttemptBody {
		for cut := 1; cut < utf8.UTFMax; cut++ {
			if last := len(body) - cut; utf8.RuneStart(body[last]) {
				if !utf8.FullRune(body[last:]) {
					body = body[:last]
				}
				break
			}
		}
	}
	text := string(body)
	return text, utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}
