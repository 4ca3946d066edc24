package request

import (
	"net/textproto"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// callback reads a callback. A URL replaces the stored one. An object is merged into it if the source is; else only
// secret headers are kept. Null and other types give nil.
func (d *decoder) callback(at string, raw []byte, from source) *policy.Callback {
	switch raw[0] {
	case 'n':
	case '"':
		return &policy.Callback{URL: d.name(at+"/url", raw)}
	case '{':
		return readNew[policy.Callback](d, at, raw, "a callback", from)
	default:
		d.wrongType(at, raw, "a URL, or an object with one")
	}
	return nil
}

// newCallback reads the callback of a new job. Null means that it has none, although its topic may have one.
func (d *decoder) newCallback(at string, raw []byte) *policy.Callback {
	if isNull(raw) {
		return &policy.Callback{Off: true}
	}
	return d.callback(at, raw, source{})
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
