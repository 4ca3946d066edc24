package response

import (
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Job writes a job without its body and attempts: its request, then its state.
func (o *Buffer) Job(j *job.Job) {
	o.Text("id", j.ID)
	o.Text("topic", j.Topic)
	o.Text("lane", j.Lane)
	o.TextOrNull("url", j.URL)
	o.TextOrNull("method", j.Method)
	o.headersOrNull("headers", j.Header)
	o.TextOrNull("content_type", j.ContentType)
	o.countOrNull("retries", j.Retries)
	o.durationsOrNull("ladder", j.Ladder)
	o.DurationOrNull("timeout", j.Timeout)
	o.Time("expires_at", j.ExpiresAt)
	o.labelsOrNull("labels", j.Labels)
	o.callback("on_delivered", j.OnDelivered)
	o.callback("on_dead", j.OnDead)
	o.TextOrNull("kind", j.Kind)
	o.TextOrNull("origin", j.Origin)

	o.Text("state", string(j.State))
	o.TextOrNull("reason", string(j.Reason))
	o.Number("attempts_made", int64(j.Attempts))
	o.numberOrNull("last_status", int64(j.Status))
	if j.State == job.Scheduled || j.State == job.Ready {
		o.Time("next_attempt_at", j.DueAt)
	} else {
		o.Null("next_attempt_at")
	}
	o.Time("created_at", j.CreatedAt)
	o.Time("ended_at", j.FinishedAt)
	o.TextOrNull("callback_id", j.CallbackID)
	o.Number("revision", j.Version)
	o.Number("generation", int64(j.Generation))
	o.Bool("cancel_requested", j.CancelRequested)
}

// scheduleJob writes what a tick registers, as a client sets it: members that are not set are left out, because null is
// a body and switches callbacks off.
func (o *Buffer) scheduleJob(s *job.Spec, expiresIn time.Duration) {
	o.TextIfSet("topic", s.Topic)
	o.TextIfSet("lane", s.Lane)
	o.TextIfSet("url", s.URL)
	o.TextIfSet("method", s.Method)
	if len(s.Header) > 0 {
		o.headers("headers", s.Header)
	}
	if s.ContentType != s.BodyKind.ContentType() {
		o.Text("content_type", s.ContentType)
	}
	if s.Retries != nil {
		o.Number("retries", int64(*s.Retries))
	}
	if s.Ladder != nil {
		o.durations("ladder", s.Ladder)
	}
	if s.Timeout != 0 {
		o.Duration("timeout", s.Timeout)
	}
	if expiresIn != 0 {
		o.Duration("expires_in", expiresIn)
	}
	if len(s.Labels) > 0 {
		o.labelsOrNull("labels", s.Labels)
	}
	if s.OnDelivered != nil {
		o.objectOrNull("on_delivered", !s.OnDelivered.Off, func() { o.callbackMembers(s.OnDelivered) })
	}
	if s.OnDead != nil {
		o.objectOrNull("on_dead", !s.OnDead.Off, func() { o.callbackMembers(s.OnDead) })
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
	o.objectOrNull("durability", reached != nil, func() {
		o.Number("replicas", int64(reached.Replicas))
		o.Bool("synced", reached.Synced)
	})
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

// JobPage writes a page of jobs with the cursor of the next; empty: it is the last.
func (o *Buffer) JobPage(page store.Page, next string) {
	Objects(o, "items", page.Jobs, o.Job)
	o.TextOrNull("next_cursor", next)
	o.Number("scanned", int64(page.Scanned))
}

// Groups writes groups of jobs. Fields that do not make the groups are null, and a status that no job had.
func (o *Buffer) Groups(all store.Groups) {
	Objects(o, "items", all.Groups, func(g *store.Group) {
		o.TextOrNull("topic", g.Topic)
		o.TextOrNull("lane", g.Lane)
		o.TextOrNull("reason", string(g.Reason))
		o.numberOrNull("status", int64(g.Status))
		o.Number("count", g.Count)
		o.Object("sample")
		o.Text("id", g.ID)
		o.Time("ended_at", g.EndedAt)
		o.Close()
	})
	o.Bool("exact", all.Exact)
	o.Number("scanned", int64(all.Scanned))
}

// TopicStats writes the counts of a topic, or of all topics.
func (o *Buffer) TopicStats(t *store.TopicStats) {
	o.Number("registered", t.Registered)
	o.Number("scheduled", t.Scheduled)
	o.Number("ready", t.Ready)
	o.Number("running", t.Running)
	o.Number("delivered", t.Delivered)
	o.Number("dead", t.Dead)
	o.Number("cancelled", t.Cancelled)
	o.Time("oldest_due_at", t.OldestDue)
	o.Number("breakers_open", t.OpenBreakers)
	o.Number("unfinished_bytes", t.Bytes)
}

// LaneStats writes the counts of a lane and the state of its breaker.
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
}
