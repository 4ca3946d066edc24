package request

import (
	"time"

	"github.com/ringback/ringback/api/response"
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

// PutTopic reads a whole policy. What it leaves out takes its default, but what is shown redacted or not at all stays as
// it is stored: secrets, a client certificate, and headers that carry secrets. So who reads a policy and puts it back
// does not lose them. Null takes one away. A pause is state rather than policy: it stays unless paused is named.
func PutTopic(text []byte, stored policy.Topic) (policy.Topic, *response.Problem) {
	kept := policy.Topic{Secrets: stored.Secrets, ClientCert: stored.ClientCert, Paused: stored.Paused}
	return decodeTopic(text, topicForm{Topic: kept, stored: stored})
}

// PatchTopic reads a change (RFC 7396): fields left out stay, and null takes a field back to its default.
func PatchTopic(text []byte, stored policy.Topic) (policy.Topic, *response.Problem) {
	return decodeTopic(text, topicForm{Topic: stored, stored: stored, merge: true})
}

func decodeTopic(text []byte, f topicForm) (policy.Topic, *response.Problem) {
	for name, value := range f.object("", text) {
		switch {
		case string(name) == "secrets":
			f.AddError("/secrets", haveOwnPath)
		case !f.field(string(name), value):
			f.unknownField("", name, "a topic")
		}
	}
	return f.finish()
}

// haveOwnPath is what a form says that names secrets.
const haveOwnPath = "have a path of their own: POST to …/secrets"

// field takes in one field; false when there is no such.
func (f *topicForm) field(name string, value []byte) bool {
	null := isNull(value)
	switch at := "/" + name; name {
	case "ladder":
		f.Ladder = optional(null, func() policy.Ladder { return f.ladder(at, value) })
	case "retries":
		f.Retries = optional(null, func() *int { return new(clampInt(f.integer(at, value))) })
	case "jitter":
		f.Jitter = optional(null, func() *float64 { return new(f.number(at, value)) })
	case "timeout":
		f.Timeout = optional(null, func() time.Duration { return outOfRangeIfZero(f.duration(at, value)) })
	case "max_age":
		f.MaxAge = optional(null, func() time.Duration { return outOfRangeIfZero(f.duration(at, value)) })
	case "workers":
		f.Workers = optional(null, func() int { return outOfRangeIfZero(clampInt(f.integer(at, value))) })
	case "lane_concurrency":
		f.LaneConcurrency = optional(null, func() int { return outOfRangeIfZero(clampInt(f.integer(at, value))) })
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
		f.success(at, value)
	case "breaker":
		f.breaker(at, value)
	case "on_delivered":
		f.OnDelivered = f.callback(at, value, f.stored.OnDelivered, f.merge)
	case "on_dead":
		f.OnDead = f.callback(at, value, f.stored.OnDead, f.merge)
	case "on_backlog":
		f.OnBacklog = f.backlog(at, value, f.stored.OnBacklog, f.merge)
	case "client_cert":
		f.ClientCert = f.certificate(at, value, f.stored.ClientCert, f.merge)
	case "keep_delivered":
		f.retention(at, value, &f.KeepDelivered)
	case "keep_dead":
		f.retention(at, value, &f.KeepDead)
	case "id_window":
		f.IDWindow = optional(null, func() *time.Duration { return new(f.duration(at, value)) })
	case "paused":
		f.Paused = optional(null, func() bool { return f.boolean(at, value) })
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

// retention takes in what is kept of ended jobs.
func (f *topicForm) retention(at string, value []byte, k *policy.Retention) {
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
			k.Max = optional(null, func() *int64 { return new(f.integer(at+"/max", v)) })
		case "max_bytes":
			k.MaxBytes = optional(null, func() *int64 { return new(f.size(at+"/max_bytes", v)) })
		default:
			f.unknownField(at, name, "what is kept")
		}
	}
}

// success takes in which answers are a success.
func (f *topicForm) success(at string, value []byte) {
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
			f.unknownField(at, name, "a success")
		}
	}
}

// breaker takes in when a lane's breaker opens.
func (f *topicForm) breaker(at string, value []byte) {
	if isNull(value) {
		f.Breaker = policy.Breaker{}
		return
	}
	for name, v := range f.object(at, value) {
		null := isNull(v)
		switch string(name) {
		case "failures":
			f.Breaker.Failures = optional(null, func() *int { return new(clampInt(f.integer(at+"/failures", v))) })
		case "open":
			f.Breaker.Open = optional(null, func() time.Duration { return outOfRangeIfZero(f.duration(at+"/open", v)) })
		default:
			f.unknownField(at, name, "a breaker")
		}
	}
}

// finish puts the headers over the stored ones and checks the whole.
func (f *topicForm) finish() (policy.Topic, *response.Problem) {
	f.headers.moved = job.ChangesOrigin(f.stored.URL, f.URL)
	f.Headers = f.headers.mergeInto(&f.decoder, "/headers", f.stored.Headers, f.merge)
	if p := f.problem(job.ValidateTopic(f.Topic)); p != nil {
		return policy.Topic{}, p
	}
	f.Headers = job.CanonicalHeader(f.Headers)
	canonicalHeaders(f.OnDelivered, f.OnDead)
	if f.OnBacklog != nil {
		canonicalHeaders(&f.OnBacklog.Callback)
	}
	return f.Topic, nil
}
