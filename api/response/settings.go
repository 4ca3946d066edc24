package response

import (
	"cmp"
	"net/http"

	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Topic writes a topic. Its policy p must have every default filled in. Secrets are left out.
func (o *Buffer) Topic(t *store.Topic, p policy.Topic) {
	o.Text("topic", t.Name)
	o.Number("revision", t.Revision)
	o.durations("ladder", p.Ladder)
	o.Number("retries", int64(*p.Retries))
	o.Float("jitter", *p.Jitter)
	o.Duration("timeout", p.Timeout)
	o.Duration("max_age", p.Terms(policy.Terms{}).MaxAge)
	o.Number("workers", int64(p.Workers))
	o.Number("lane_concurrency", int64(p.LaneConcurrency))
	o.Text("rate", units.FormatRate(p.Rate))
	o.Text("lane_rate", units.FormatRate(p.LaneRate))
	o.Text("url", p.URL)
	o.headers("headers", p.Headers)
	o.success("success", p.Success)
	o.texts("give_up_on", p.GiveUpOn)
	o.Object("breaker")
	o.Number("failures", int64(*p.Breaker.Failures))
	o.Duration("open", p.Breaker.Open)
	o.Close()
	o.callback("on_delivered", p.OnDelivered)
	o.callback("on_dead", p.OnDead)
	o.backlog("on_backlog", p.OnBacklog)
	o.clientCert("client_cert", p.ClientCert)
	o.retention("keep_delivered", p.KeepDelivered)
	o.retention("keep_dead", p.KeepDead)
	o.Duration("id_window", *p.IDWindow)
	o.Bool("paused", p.Paused)
}

// success writes a rule for successful responses.
func (o *Buffer) success(name string, s policy.Success) {
	o.Object(name)
	if len(s.Status) == 0 {
		s.Status = []string{"2xx"}
	}
	o.texts("status", s.Status)
	o.Text("body_equals", s.BodyEquals)
	o.Text("body_contains", s.BodyContains)
	o.Close()
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

// retention writes how long ended jobs are kept, and how many.
func (o *Buffer) retention(name string, k policy.Retention) {
	o.Object(name)
	o.Duration("for", *k.For)
	o.Number("max", *k.Max)
	o.Text("max_bytes", units.FormatSize(*k.MaxBytes))
	o.Close()
}

// Lane writes a lane's own settings. Secrets are left out.
func (o *Buffer) Lane(l *store.Lane) {
	o.Text("topic", l.Queue.Topic)
	o.Text("lane", l.Queue.Lane)
	o.Number("revision", l.Revision)
	o.Text("url", l.Settings.URL)
	o.headers("headers", l.Settings.Headers)
	if l.Settings.LaneConcurrency > 0 {
		o.Number("lane_concurrency", int64(l.Settings.LaneConcurrency))
	} else {
		o.Null("lane_concurrency")
	}
	o.Text("lane_rate", units.FormatRate(l.Settings.LaneRate))
	o.Bool("paused", l.Settings.Paused)
}

// Secret writes the id and the age of a stored secret.
func (o *Buffer) Secret(s *policy.Secret) {
	o.Text("id", s.ID)
	o.Time("created_at", s.CreatedAt)
}

// PublicKey writes the public half of a stored secret.
func (o *Buffer) PublicKey(k *store.PublicKey) {
	o.Text("id", k.ID)
	o.Time("created_at", k.CreatedAt)
	o.Text("public_key", k.Key)
}
