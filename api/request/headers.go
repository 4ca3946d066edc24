package request

import (
	"maps"
	"net/textproto"
	"slices"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

// A headerForm reads headers and merges them into the stored ones.
type headerForm struct {
	// present are the headers in the request, spelled as there; nil values remove a header.
	present map[string][]string
	// cleared is set when the request's headers are null.
	cleared bool
	// moved is set when the URL has another origin than the stored one.
	moved bool
}

// reader reads the headers.
func (h *headerForm) reader(d *decoder) fieldReader {
	return func(at string, raw []byte) {
		if isNull(raw) {
			h.cleared = true
			return
		}
		h.present = make(map[string][]string)
		for name, v := range d.object(at, raw) {
			switch {
			case len(h.present) > maxEntries:
			case isNull(v):
				h.present[string(name)] = nil
			default:
				h.present[string(name)] = append([]string{}, d.header(at, name, v)...)
			}
		}
	}
}

// mergeInto returns the merged headers; nil when there are none. With merge, stored headers are kept unless the request
// names them; without, only secret ones are kept, and those sent as clients read them, redacted. A secret is not kept
// for a new origin, so that a client that may change a URL cannot obtain it. Names are canonicalized later.
func (h *headerForm) mergeInto(d *decoder, at string, stored map[string][]string, merge bool) map[string][]string {
	headers := make(map[string][]string, len(h.present)+len(stored))
	named := make(map[string]bool, len(h.present))
	for name, values := range h.present {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		named[canonical] = true
		if _, sealed := job.Sealed(values); sealed { // a marker of stored values only
			d.AddError(job.JSONPointer(at, name), "must not contain line breaks or other control characters")
		}
		if old, kept := stored[canonical]; kept && isPlaceholder(name, values) {
			values = old
			if h.moved { // a client that was shown the placeholder must not obtain the value by another URL
				d.AddError(job.JSONPointer(at, canonical), ResendOnNewOrigin)
			}
		} else if isPlaceholder(name, values) {
			d.redactedPlaceholder(job.JSONPointer(at, name))
		}
		if values != nil {
			headers[name] = values
		}
	}
	for name, values := range stored {
		if !h.cleared && !named[name] && (merge || job.SecretHeader(name)) {
			h.checkOrigin(d, at, name)
			headers[name] = values
		}
	}
	if len(headers) == 0 {
		return nil
	}
	return headers
}

// ResendOnNewOrigin is the error of a stored secret header whose URL has a new origin.
const ResendOnNewOrigin = "must be resent (or set to null): the URL now points to a different origin"

// checkOrigin refuses to keep a header for a new origin that is secret, or that the token is not shown.
func (h *headerForm) checkOrigin(d *decoder, at, name string) {
	if h.moved && (job.SecretHeader(name) || d.hidesHeaders && !job.HarmlessHeader(name)) {
		d.AddError(job.JSONPointer(at, name), ResendOnNewOrigin)
	}
}

// redactedPlaceholder adds the error of a secret that was sent as [redacted], as read from an answer.
func (d *decoder) redactedPlaceholder(at string) {
	d.AddError(at, "is the placeholder of a redacted secret: send the secret itself")
}

// rejectRedacted refuses redacted values where there are no stored ones to keep.
func (d *decoder) rejectRedacted(at string, headers map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if isPlaceholder(name, headers[name]) {
			d.redactedPlaceholder(job.JSONPointer(at, name))
		}
	}
}

// isPlaceholder reports whether a header has the value that answers show instead of one that may be a secret.
func isPlaceholder(name string, values []string) bool {
	return len(values) == 1 && values[0] == response.Redacted && !job.HarmlessHeader(name)
}
