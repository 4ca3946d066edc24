package request

import (
	"net/textproto"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// A callbackForm reads a callback and merges it into the stored one.
type callbackForm struct {
	at       string
	callback policy.Callback
	headers  headerForm
}

// callback reads a callback. A URL replaces the stored callback. An object is merged into it with merge; without, only
// secret headers are kept. Null and other types give nil.
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
		d.read(at, value, "a callback", f.fields(d))
	default:
		d.wrongType(at, value, "a URL, or an object with one")
		return nil
	}
	return f.finish(d, stored, merge)
}

// newCallback reads the callback of a new job. Null means that it has none, although its topic may have one.
func (d *decoder) newCallback(at string, value []byte) *policy.Callback {
	if isNull(value) {
		return &policy.Callback{Off: true}
	}
	return d.callback(at, value, nil, false)
}

// backlog reads on_backlog: its limits, and its callback.
func (d *decoder) backlog(at string, value []byte, stored *policy.Backlog, merge bool) *policy.Backlog {
	if isNull(value) {
		return nil
	}
	if value[0] != '{' {
		d.wrongType(at, value, "an object")
		return nil
	}
	var b policy.Backlog
	var callback *policy.Callback
	if stored != nil {
		callback = &stored.Callback
		if merge {
			b = *stored
		}
	}
	f := callbackForm{at: at, callback: b.Callback}
	table := f.fields(d)
	table["older_than"] = set(&b.OlderThan, d.positiveDuration)
	table["more_than"] = set(&b.MoreThan, d.positiveInteger)
	d.read(at, value, "on_backlog", table)
	b.Callback = *f.finish(d, callback, merge)
	return &b
}

// fields returns the fields of a callback.
func (f *callbackForm) fields(d *decoder) fields {
	c := &f.callback
	return fields{
		"url":     set(&c.URL, d.name),
		"method":  set(&c.Method, d.name),
		"headers": f.headers.reader(d),
		"retries": setPointer(&c.Retries, d.count),
		"timeout": set(&c.Timeout, d.positiveDuration),
		"include": set(&c.Include, d.texts),
	}
}

// finish merges the headers into the stored ones.
func (f *callbackForm) finish(d *decoder, stored *policy.Callback, merge bool) *policy.Callback {
	var headers map[string][]string
	if stored != nil {
		headers = stored.Headers
		f.headers.moved = job.ChangesOrigin(stored.URL, f.callback.URL)
	}
	f.callback.Headers = f.headers.mergeInto(d, f.at+"/headers", headers, merge)
	return &f.callback
}

// canonicalHeaders gives the headers of validated callbacks their canonical names. Stored callbacks have them already
// and are not written to, since other goroutines may read them.
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
