package response

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Job writes a job without its body and attempts: its request, then its state.
func (o *Buffer) Job(j *job.Job) {
	o.Members(j)
	if j.State == job.Scheduled || j.State == job.Ready {
		o.Time("next_attempt_at", j.DueAt)
	} else {
		o.Null("next_attempt_at")
	}
}

// scheduleJob writes what a tick registers, as a client sets it: members that are not set are left out, because null is
// a body and switches callbacks off.
func (o *Buffer) scheduleJob(s job.Spec, expiresIn time.Duration) {
	if s.ContentType == s.BodyKind.ContentType() {
		s.ContentType = ""
	}
	for _, c := range []struct {
		name string
		at   **policy.Callback
	}{{"on_delivered", &s.OnDelivered}, {"on_dead", &s.OnDead}} {
		if *c.at != nil && (*c.at).Off {
			*c.at = nil
			o.Null(c.name)
		}
	}
	planOf(reflect.TypeFor[job.Spec]()).writeSet(o, reflect.ValueOf(&s).UnsafePointer())
	if expiresIn != 0 {
		o.Duration("expires_in", expiresIn)
	}
	switch s.BodyKind {
	case job.BodyJSON:
		o.Member("body", s.Body)
	case job.BodyText:
		o.Text("body_text", string(s.Body))
	case job.BodyBase64:
		o.bytes("body_base64", s.Body)
	}
}

// UnreadJob writes what is known of a registered job whose state is not: which it is, and its durability.
func (o *Buffer) UnreadJob(j *job.Job) {
	o.Text("id", j.ID)
	o.Text("topic", j.Topic)
	o.Text("lane", j.Lane)
	o.Durability(j.Durability)
}

// Durability writes the durability of a change; null unless the store reported it.
func (o *Buffer) Durability(reached *job.Durability) {
	o.objectOrNull("durability", reached != nil, func() { o.Members(reached) })
}

// Body writes a job's body as it was sent, in one of three members. The others are null.
func (o *Buffer) Body(kind job.BodyKind, body []byte) {
	switch {
	case kind == job.BodyNone:
		o.nulls("body", "body_text", "body_base64")
	case kind == job.BodyJSON && json.Valid(body):
		o.Member("body", body)
		o.nulls("body_text", "body_base64")
	case kind == job.BodyText && utf8.Valid(body):
		o.Null("body")
		o.Text("body_text", string(body))
		o.Null("body_base64")
	default:
		o.nulls("body", "body_text")
		o.bytes("body_base64", body)
	}
}

// bytes writes base64.
func (o *Buffer) bytes(name string, b []byte) {
	o.Key(name)
	o.b = append(base64.StdEncoding.AppendEncode(append(o.b, '"'), b), '"')
}

// Groups writes groups of jobs. Fields that do not make the groups are null, and so is the status or the error class of
// jobs that have none.
func (o *Buffer) Groups(all store.Groups) {
	Objects(o, "items", all.Groups, func(g *store.Group) {
		o.TextOrNull("topic", g.Topic)
		o.TextOrNull("lane", g.Lane)
		o.TextOrNull("reason", string(g.Reason))
		o.numberOrNull("status", int64(g.Status))
		o.TextOrNull("error_class", string(g.ErrorClass))
		o.Number("count", g.Count)
		o.Object("sample")
		o.Text("id", g.ID)
		o.Time("ended_at", g.EndedAt)
		o.Close()
	})
	o.Bool("exact", all.Exact)
	o.Number("scanned", int64(all.Scanned))
}

// LaneStats writes the counts of a lane, the state of its breaker, and what is known of its receiver.
func (o *Buffer) LaneStats(l *store.LaneStats, now time.Time) {
	o.Text("lane", l.Lane)
	o.Number("scheduled", l.Scheduled)
	o.Number("ready", l.Ready)
	o.Number("running", l.Running)
	coolingDown := l.CooldownUntil.After(now)
	breaker := "closed"
	switch {
	case l.BreakerOpen && coolingDown:
		breaker = "open"
	case l.BreakerOpen:
		breaker = "half_open" // a probe is allowed, or in flight
	}
	o.Text("breaker", breaker)
	if coolingDown {
		o.Time("cooldown_until", l.CooldownUntil)
	} else {
		o.Null("cooldown_until")
	}
	receiver := store.NewReceiver(l.Health, now)
	o.Members(&receiver)
}
