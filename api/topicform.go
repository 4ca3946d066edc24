package api

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// A topicForm is a policy as a client described it, on its way over the one that is stored.
type topicForm struct {
	decoder
	policy.Topic
	headers headerForm
	stored  policy.Topic
	// merge: what is left out stays, also inside of what is named.
	merge bool
}

// putPolicy reads a whole policy. What it leaves out takes its default, but what is shown redacted or not at all stays as
// it is stored: secrets, a client certificate, and headers that carry secrets. So who reads a policy and puts it back
// does not lose them. Null takes one away. A pause is state rather than policy: it stays unless paused is named.
func putPolicy(text []byte, stored policy.Topic) (policy.Topic, *problem) {
	kept := policy.Topic{Secrets: stored.Secrets, ClientCert: stored.ClientCert, Paused: stored.Paused}
	return readPolicy(text, topicForm{Topic: kept, stored: stored})
}

// patchPolicy reads a change (RFC 7396): fields left out stay, and null takes a field back to its default.
func patchPolicy(text []byte, stored policy.Topic) (policy.Topic, *problem) {
	return readPolicy(text, topicForm{Topic: stored, stored: stored, merge: true})
}

func readPolicy(text []byte, f topicForm) (policy.Topic, *problem) {
	for name, value := range f.object("", text) {
		switch {
		case string(name) == "secrets":
			f.fault("/secrets", havePathOfTheirOwn)
		case !f.field(string(name), value):
			f.unknown("", name, "a topic")
		}
	}
	return f.finish()
}

// havePathOfTheirOwn is what a form says that names secrets.
const havePathOfTheirOwn = "have a path of their own: POST to …/secrets"

// field takes in one field; false when there is no such.
func (f *topicForm) field(name string, value []byte) bool {
	null := isNull(value)
	switch at := "/" + name; name {
	case "ladder":
		f.Ladder = optional(null, func() policy.Ladder { return f.ladder(at, value) })
	case "retries":
		f.Retries = optional(null, func() *int { return new(count(f.whole(at, value))) })
	case "jitter":
		f.Jitter = optional(null, func() *float64 { return new(f.share(at, value)) })
	case "timeout":
		f.Timeout = optional(null, func() time.Duration { return positive(f.duration(at, value)) })
	case "max_age":
		f.MaxAge = optional(null, func() time.Duration { return positive(f.duration(at, value)) })
	case "workers":
		f.Workers = optional(null, func() int { return positive(count(f.whole(at, value))) })
	case "lane_concurrency":
		f.LaneConcurrency = optional(null, func() int { return positive(count(f.whole(at, value))) })
	case "rate":
		f.Rate = optional(null, func() policy.Rate { return f.rate(at, value) })
	case "lane_rate":
		f.LaneRate = optional(null, func() policy.Rate { return f.rate(at, value) })
	case "url":
		f.URL = optional(null, func() string { return f.text(at, value) })
	case "headers":
		f.headers.read(&f.decoder, at, value)
	case "give_up_on":
		f.GiveUpOn = optional(null, func() []string { return f.texts(at, value) })
	case "success":
		f.readSuccess(at, value)
	case "breaker":
		f.readBreaker(at, value)
	case "on_delivered":
		f.OnDelivered = f.callback(at, value, f.stored.OnDelivered, f.merge)
	case "on_dead":
		f.OnDead = f.callback(at, value, f.stored.OnDead, f.merge)
	case "on_backlog":
		f.OnBacklog = f.backlog(at, value, f.stored.OnBacklog, f.merge)
	case "client_cert":
		f.ClientCert = f.certificate(at, value, f.stored.ClientCert, f.merge)
	case "keep_delivered":
		f.keep(at, value, &f.KeepDelivered)
	case "keep_dead":
		f.keep(at, value, &f.KeepDead)
	case "id_window":
		f.IDWindow = optional(null, func() *time.Duration { return new(f.duration(at, value)) })
	case "paused":
		f.Paused = optional(null, func() bool { return f.flag(at, value) })
	default:
		return false
	}
	return true
}

// optional is the zero value for null, else what read gives.
func optional[T any](null bool, read func() T) T {
	if null {
		var zero T
		return zero
	}
	return read()
}

// keep takes in what is kept of ended jobs.
func (f *topicForm) keep(at string, value []byte, k *policy.Retention) {
	if isNull(value) {
		*k = policy.Retention{}
		return
	}
	for name, v := range f.object(at, value) {
		null := isNull(v)
		switch string(name) {
		case "for":
			k.For = optional(null, func() *time.Duration { return new(f.duration(at+"/for", v)) })
		case "max":
			k.Max = optional(null, func() *int64 { return new(f.whole(at+"/max", v)) })
		case "max_bytes":
			k.MaxBytes = optional(null, func() *int64 { return new(f.size(at+"/max_bytes", v)) })
		default:
			f.unknown(at, name, "what is kept")
		}
	}
}

// readSuccess takes in which answers are a success.
func (f *topicForm) readSuccess(at string, value []byte) {
	if isNull(value) {
		f.Success = policy.Success{}
		return
	}
	for name, v := range f.object(at, value) {
		null := isNull(v)
		switch string(name) {
		case "status":
			f.Success.Status = optional(null, func() []string { return f.texts(at+"/status", v) })
		case "body_equals":
			f.Success.BodyEquals = optional(null, func() string { return f.text(at+"/body_equals", v) })
		case "body_contains":
			f.Success.BodyContains = optional(null, func() string { return f.text(at+"/body_contains", v) })
		default:
			f.unknown(at, name, "a success")
		}
	}
}

// readBreaker takes in when a lane's breaker opens.
func (f *topicForm) readBreaker(at string, value []byte) {
	if isNull(value) {
		f.Breaker = policy.Breaker{}
		return
	}
	for name, v := range f.object(at, value) {
		null := isNull(v)
		switch string(name) {
		case "failures":
			f.Breaker.Failures = optional(null, func() *int { return new(count(f.whole(at+"/failures", v))) })
		case "open":
			f.Breaker.Open = optional(null, func() time.Duration { return positive(f.duration(at+"/open", v)) })
		default:
			f.unknown(at, name, "a breaker")
		}
	}
}

// finish puts the headers over the stored ones and checks the whole.
func (f *topicForm) finish() (policy.Topic, *problem) {
	f.headers.moved = job.ChangesOrigin(f.stored.URL, f.URL)
	f.Headers = f.headers.over(&f.decoder, "/headers", f.stored.Headers, f.merge)
	if p := f.problem(job.ValidateTopic(f.Topic)); p != nil {
		return policy.Topic{}, p
	}
	f.Headers = job.CanonicalHeader(f.Headers)
	canonical(f.OnDelivered, f.OnDead)
	if f.OnBacklog != nil {
		canonical(&f.OnBacklog.Callback)
	}
	return f.Topic, nil
}
