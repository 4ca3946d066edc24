package api

import (
	"net/textproto"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// A topicForm is a policy as a client described it, on its way over the one that is stored.
type topicForm struct {
	decoder
	policy.Topic
	// headers are what the request says of headers: a header named with nil is to go.
	headers map[string][]string
	// cleared says that all headers are to go: the request says null.
	cleared bool
}

// putPolicy reads a whole policy. What it leaves out takes its default, but headers that carry secrets stay as they are
// stored: they are shown redacted, so who reads a policy and puts it back must not lose them. Null takes one away.
func putPolicy(text []byte, stored policy.Topic) (policy.Topic, *problem) {
	var f topicForm
	f.read(text)
	return f.finish(stored.Headers, false)
}

// patchPolicy reads a change (RFC 7396): fields left out stay, and null takes a field back to its default.
func patchPolicy(text []byte, stored policy.Topic) (policy.Topic, *problem) {
	f := topicForm{Topic: stored}
	f.read(text)
	return f.finish(stored.Headers, true)
}

// read takes in all fields.
func (f *topicForm) read(text []byte) {
	for name, value := range f.object("", text) {
		if !f.field(string(name), value) {
			f.unknown("", name, "a topic")
		}
	}
}

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
	case "url":
		f.URL = optional(null, func() string { return f.text(at, value) })
	case "headers":
		f.readHeaders(at, value)
	case "give_up_on":
		f.GiveUpOn = optional(null, func() []string { return f.texts(at, value) })
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
func (f *topicForm) keep(at string, value []byte, k *policy.Keep) {
	if isNull(value) {
		*k = policy.Keep{}
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

// readHeaders takes in what is said of headers.
func (f *topicForm) readHeaders(at string, value []byte) {
	if isNull(value) {
		f.cleared = true
		return
	}
	f.headers = make(map[string][]string)
	for name, v := range f.object(at, value) {
		switch {
		case len(f.headers) > maxEntries:
		case isNull(v):
			f.headers[string(name)] = nil
		default:
			f.headers[string(name)] = append([]string{}, f.header(at, name, v)...)
		}
	}
}

// finish puts the headers over the stored ones and checks the whole. With merge stored headers stay unless they are
// named, else only those that carry secrets do.
func (f *topicForm) finish(stored map[string][]string, merge bool) (policy.Topic, *problem) {
	headers := make(map[string][]string, len(f.headers)+len(stored))
	said := make(map[string]bool, len(f.headers))
	for name, values := range f.headers {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		said[canonical] = true
		if old, kept := stored[canonical]; kept && secret(name) && isRedacted(values) {
			values = old
		}
		if values != nil {
			headers[name] = values
		}
	}
	f.unredact("/headers", headers)
	for name, values := range stored {
		if !f.cleared && !said[name] && (merge || secret(name)) {
			headers[name] = values
		}
	}
	f.Headers = headers
	if p := f.problem(job.ValidateTopic(f.Topic)); p != nil {
		return policy.Topic{}, p
	}
	if f.Headers = job.CanonicalHeader(headers); len(headers) == 0 {
		f.Headers = nil
	}
	return f.Topic, nil
}
