package request

import (
	"net/textproto"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// A callbackForm is whom to tell of something, as a client described it, on its way over what is stored.
type callbackForm struct {
	at       string
	callback policy.Callback
	headers  headerForm
}

// callback reads whom to tell of an end: a URL alone, which takes the place of all that is stored, or an object. Of an
// object what it leaves out stays as it is stored with merge, else only headers that carry secrets do. Nil for null, and
// for what is neither.
func (d *decoder) callback(at string, value []byte, stored *policy.Callback, merge bool) *policy.Callback {
	f := callbackForm{at: at}
	switch value[0] {
	case 'n':
		return nil
	case '"':
		return &policy.Callback{URL: d.name(at+"/url", value)}
	case '{':
		if stored != nil && merge {
			f.callback = *stored
		}
		for name, v := range d.object(at, value) {
			if !f.field(d, string(name), v) {
				d.unknownField(at, name, "a callback")
			}
		}
	default:
		d.wrongType(at, value, "a URL, or an object with one")
		return nil
	}
	return f.finish(d, stored, merge)
}

// backlog reads when and whom to tell of a backlog.
func (d *decoder) backlog(at string, value []byte, stored *policy.Backlog, merge bool) *policy.Backlog {
	if isNull(value) {
		return nil
	}
	if value[0] != '{' {
		d.wrongType(at, value, "an object")
		return nil
	}
	var b policy.Backlog
	var told *policy.Callback
	if stored != nil {
		told = &stored.Callback
		if merge {
			b = *stored
		}
	}
	f := callbackForm{at: at, callback: b.Callback}
	for name, v := range d.object(at, value) {
		null := isNull(v)
		switch string(name) {
		case "older_than":
			b.OlderThan = optional(null, func() time.Duration { return outOfRangeIfZero(d.duration(at+"/older_than", v)) })
		case "more_than":
			b.MoreThan = optional(null, func() int64 { return outOfRangeIfZero(d.integer(at+"/more_than", v)) })
		default:
			if !f.field(d, string(name), v) {
				d.unknownField(at, name, "an alarm")
			}
		}
	}
	b.Callback = *f.finish(d, told, merge)
	return &b
}

// field takes in one member; false when there is no such.
func (f *callbackForm) field(d *decoder, name string, value []byte) bool {
	null := isNull(value)
	switch at := f.at + "/" + name; name {
	case "url":
		f.callback.URL = optional(null, func() string { return d.name(at, value) })
	case "method":
		f.callback.Method = optional(null, func() string { return d.name(at, value) })
	case "headers":
		f.headers.read(d, at, value)
	case "retries":
		f.callback.Retries = optional(null, func() *int { return new(clampInt(d.integer(at, value))) })
	case "timeout":
		f.callback.Timeout = optional(null, func() time.Duration { return outOfRangeIfZero(d.duration(at, value)) })
	case "include":
		f.callback.Include = optional(null, func() []string { return d.texts(at, value) })
	default:
		return false
	}
	return true
}

// finish puts the headers over the stored ones.
func (f *callbackForm) finish(d *decoder, stored *policy.Callback, merge bool) *policy.Callback {
	var headers map[string][]string
	if stored != nil {
		headers = stored.Headers
		f.headers.moved = job.ChangesOrigin(stored.URL, f.callback.URL)
	}
	f.callback.Headers = f.headers.mergeInto(d, f.at+"/headers", headers, merge)
	return &f.callback
}

// canonicalHeaders gives the headers of callbacks that passed the checks their canonical names. One that is stored has them, and
// is not written to: others may be reading it.
func canonicalHeaders(all ...*policy.Callback) {
	for _, c := range all {
		if c != nil && !hasCanonicalHeaders(c.Headers) {
			c.Headers = job.CanonicalHeader(c.Headers)
		}
	}
}

func hasCanonicalHeaders(headers map[string][]string) bool {
	for name := range headers {
		if textproto.CanonicalMIMEHeaderKey(name) != name {
			return false
		}
	}
	return true
}
