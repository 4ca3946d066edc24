package response

import (
	"cmp"
	"net/http"
	"time"

	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Topic writes a topic with a policy, its own or the effective one. What the policy does not set is null. Secrets are
// left out.
func (o *Buffer) Topic(t *store.Topic, p policy.Topic) {
	o.Text("topic", t.Name)
	o.Number("revision", t.Revision)
	o.durationsOrNull("ladder", p.Ladder)
	o.countOrNull("retries", p.Retries)
	if p.Jitter == nil {
		o.Null("jitter")
	} else {
		o.Float("jitter", *p.Jitter)
	}
	o.DurationOrNull("timeout", p.Timeout)
	o.DurationOrNull("max_age", p.MaxAge)
	o.numberOrNull("workers", int64(p.Workers))
	o.numberOrNull("lane_concurrency", int64(p.LaneConcurrency))
	o.TextOrNull("rate", units.FormatRate(p.Rate))
	o.TextOrNull("lane_rate", units.FormatRate(p.LaneRate))
	o.TextOrNull("deliver", string(p.Deliver))
	o.Bool("ordered", p.Ordered)
	o.TextOrNull("url", p.URL)
	o.headersOrNull("headers", p.Headers)
	o.success("success", p.Success)
	o.textsOrNull("give_up_on", p.GiveUpOn)
	o.objectOrNull("breaker", p.Breaker != policy.Breaker{}, func() {
		o.countOrNull("failures", p.Breaker.Failures)
		o.DurationOrNull("open", p.Breaker.Open)
	})
	o.callback("on_delivered", p.OnDelivered)
	o.callback("on_dead", p.OnDead)
	o.backlog("on_backlog", p.OnBacklog)
	o.clientCert("client_cert", p.ClientCert)
	o.retention("keep_delivered", p.KeepDelivered)
	o.retention("keep_dead", p.KeepDead)
	o.spanOrNull("id_window", p.IDWindow)
	o.TextOrNull("managed_by", t.Policy.ManagedBy)
	o.pause(t.Policy.Paused, t.Policy.Pause)
	o.updated(t.Updated)
	o.Durability(t.Durability)
}

// spanOrNull writes a duration whose absence differs from 0.
func (o *Buffer) spanOrNull(name string, d *time.Duration) {
	if d == nil {
		o.Null(name)
	} else {
		o.Duration(name, *d)
	}
}

// pause writes whether a topic or a lane is paused, since when, by whom and why.
func (o *Buffer) pause(paused bool, p policy.Pause) {
	o.Bool("paused", paused)
	o.Time("paused_at", p.At)
	o.TextOrNull("paused_by", p.By)
	o.TextOrNull("pause_note", p.Note)
}

// updated writes when settings were last changed by a client, and by which.
func (o *Buffer) updated(u policy.Update) {
	o.Time("updated_at", u.At)
	o.TextOrNull("updated_by", u.By)
}

// objectOrNull writes an object with the members that write writes, or null unless it is set.
func (o *Buffer) objectOrNull(name string, set bool, write func()) {
	if !set {
		o.Null(name)
		return
	}
	o.Object(name)
	write()
	o.Close()
}

// callback writes a callback, or null.
func (o *Buffer) callback(name string, c *policy.Callback) {
	o.objectOrNull(name, c != nil, func() { o.callbackMembers(c) })
}

func (o *Buffer) callbackMembers(c *policy.Callback) {
	o.TextOrNull("url", c.URL)
	o.Text("method", cmp.Or(c.Method, http.MethodPost))
	o.headersOrNull("headers", c.Headers)
	o.countOrNull("retries", c.Retries)
	o.DurationOrNull("timeout", c.Timeout)
	o.texts("include", c.Include)
}

// success writes a success rule; null when it is not set.
func (o *Buffer) success(name string, s policy.Success) {
	o.objectOrNull(name, !s.IsZero(), func() {
		o.textsOrNull("status", s.Status)
		o.TextOrNull("body_equals", s.BodyEquals)
		o.TextOrNull("body_contains", s.BodyContains)
	})
}

// backlog writes on_backlog, or null.
func (o *Buffer) backlog(name string, b *policy.Backlog) {
	o.objectOrNull(name, b != nil, func() {
		o.callbackMembers(&b.Callback)
		o.DurationOrNull("older_than", b.OlderThan)
		o.numberOrNull("more_than", b.MoreThan)
	})
}

// clientCert writes a client certificate with its key redacted, or null.
func (o *Buffer) clientCert(name string, c *policy.ClientCert) {
	o.objectOrNull(name, c != nil, func() {
		o.Text("chain", c.Chain)
		o.Text("key", Redacted)
	})
}

// retention writes how long ended jobs are kept, and how many, or null.
func (o *Buffer) retention(name string, k policy.Retention) {
	o.objectOrNull(name, k != policy.Retention{}, func() {
		o.spanOrNull("for", k.For)
		if k.Max == nil {
			o.Null("max")
		} else {
			o.Number("max", *k.Max)
		}
		if k.MaxBytes == nil {
			o.Null("max_bytes")
		} else {
			o.Text("max_bytes", units.FormatSize(*k.MaxBytes))
		}
	})
}

// Lane writes a lane's own settings. Secrets are left out.
func (o *Buffer) Lane(l *store.Lane) {
	o.Text("topic", l.Queue.Topic)
	o.Text("lane", l.Queue.Lane)
	o.Number("revision", l.Revision)
	o.TextOrNull("url", l.Settings.URL)
	o.headersOrNull("headers", l.Settings.Headers)
	o.numberOrNull("lane_concurrency", int64(l.Settings.LaneConcurrency))
	o.TextOrNull("lane_rate", units.FormatRate(l.Settings.LaneRate))
	o.Bool("ordered", l.Settings.Ordered)
	o.TextOrNull("managed_by", l.Settings.ManagedBy)
	o.pause(l.Settings.Paused, l.Settings.Pause)
	o.updated(l.Updated)
	o.Durability(l.Durability)
}

// Secret writes the id of a stored secret, its age and who added it.
func (o *Buffer) Secret(s *policy.Secret) {
	o.Text("id", s.ID)
	o.Time("created_at", s.CreatedAt)
	o.TextOrNull("created_by", s.CreatedBy)
}

// PublicKey writes the public half of a stored secret.
func (o *Buffer) PublicKey(k *store.PublicKey) {
	o.Text("id", k.ID)
	o.Time("created_at", k.CreatedAt)
	o.Text("public_key", k.Key)
}
