package api

import (
	"cmp"
	"net/http"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// answerTopic shows a topic, and how durable its change was.
func (a *api) answerTopic(w http.ResponseWriter, t store.Topic) {
	o := newOut()
	defer o.free()
	o.open()
	a.topicInto(o, t)
	o.durability(t.Durability)
	o.close()
	o.send(w, http.StatusOK)
}

// topicInto writes the members of a topic's policy with every default filled in; secrets are not among them.
func (a *api) topicInto(o *out, t store.Topic) {
	p := a.service.Effective(t.Policy)
	o.text("topic", t.Name)
	o.number("revision", t.Revision)
	o.durations("ladder", p.Ladder)
	o.number("retries", int64(*p.Retries))
	o.share("jitter", *p.Jitter)
	o.duration("timeout", p.Timeout)
	o.duration("max_age", p.Terms(policy.Terms{}).MaxAge)
	o.number("workers", int64(p.Workers))
	o.number("lane_concurrency", int64(p.LaneConcurrency))
	o.text("rate", job.FormatRate(p.Rate))
	o.text("lane_rate", job.FormatRate(p.LaneRate))
	o.text("url", p.URL)
	o.headers("headers", p.Headers)
	o.success("success", p.Success)
	o.texts("give_up_on", p.GiveUpOn)
	o.object("breaker")
	o.number("failures", int64(*p.Breaker.Failures))
	o.duration("open", p.Breaker.Open)
	o.close()
	o.callback("on_delivered", p.OnDelivered)
	o.callback("on_dead", p.OnDead)
	o.backlog("on_backlog", p.OnBacklog)
	o.certificate("client_cert", p.ClientCert)
	o.keep("keep_delivered", p.KeepDelivered)
	o.keep("keep_dead", p.KeepDead)
	o.duration("id_window", *p.IDWindow)
	o.flag("paused", p.Paused)
}

// success writes which answers are a success.
func (o *out) success(name string, s policy.Success) {
	o.object(name)
	if len(s.Status) == 0 {
		s.Status = []string{"2xx"}
	}
	o.texts("status", s.Status)
	o.text("body_equals", s.BodyEquals)
	o.text("body_contains", s.BodyContains)
	o.close()
}

// callback writes whom to tell of something; null when nobody is.
func (o *out) callback(name string, c *policy.Callback) {
	if c == nil {
		o.none(name)
		return
	}
	o.object(name)
	o.callbackMembers(c)
	o.close()
}

func (o *out) callbackMembers(c *policy.Callback) {
	o.text("url", c.URL)
	o.text("method", cmp.Or(c.Method, http.MethodPost))
	if len(c.Headers) > 0 {
		o.headers("headers", c.Headers)
	}
	if c.Retries != nil {
		o.number("retries", int64(*c.Retries))
	}
	if c.Timeout > 0 {
		o.duration("timeout", c.Timeout)
	}
	if len(c.Include) > 0 {
		o.texts("include", c.Include)
	}
}

// backlog writes when and whom to tell of a backlog; null when nobody is.
func (o *out) backlog(name string, b *policy.Backlog) {
	if b == nil {
		o.none(name)
		return
	}
	o.object(name)
	o.callbackMembers(&b.Callback)
	if b.OlderThan > 0 {
		o.duration("older_than", b.OlderThan)
	}
	if b.MoreThan > 0 {
		o.number("more_than", b.MoreThan)
	}
	o.close()
}

// certificate writes a client certificate without its key; null when there is none.
func (o *out) certificate(name string, c *policy.ClientCert) {
	if c == nil {
		o.none(name)
		return
	}
	o.object(name)
	o.text("chain", c.Chain)
	o.text("key", redacted)
	o.close()
}

// keep writes what is kept of ended jobs.
func (o *out) keep(name string, k policy.Retention) {
	o.object(name)
	o.duration("for", *k.For)
	o.number("max", *k.Max)
	o.text("max_bytes", job.FormatSize(*k.MaxBytes))
	o.close()
}

// none writes that there is nothing.
func (o *out) none(name string) { o.raw(name, []byte("null")) }
