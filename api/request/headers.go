package request

import (
	"maps"
	"net/textproto"
	"slices"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

// A headerForm is what a request says of headers, on their way over those that are stored.
type headerForm struct {
	// present are the headers that the request names, in its spelling: one named with nil is to go.
	present map[string][]string
	// cleared says that all are to go: the request says null.
	cleared bool
	// moved says that they would go to another origin than the stored ones did.
	moved bool
}

// reader reads a headers field.
func (h *headerForm) reader(d *decoder) fieldReader {
	return func(at string, raw []byte) { h.read(d, at, raw) }
}

func (h *headerForm) read(d *decoder, at string, value []byte) {
	if isNull(value) {
		h.cleared = true
		return
	}
	h.present = make(map[string][]string)
	for name, v := range d.object(at, value) {
		switch {
		case len(h.present) > maxEntries:
		case isNull(v):
			h.present[string(name)] = nil
		default:
			h.present[string(name)] = append([]string{}, d.header(at, name, v)...)
		}
	}
}

// mergeInto puts the headers over the stored ones; nil when there are none. With merge stored headers stay unless they are
// named, else only those that carry secrets do: they are shown redacted, so who reads and puts back must not lose them.
// No secret goes to another origin unless it is said again: who can change a URL must not learn it that way. Names keep
// the request's spelling until they are checked.
func (h *headerForm) mergeInto(d *decoder, at string, stored map[string][]string, merge bool) map[string][]string {
	headers := make(map[string][]string, len(h.present)+len(stored))
	said := make(map[string]bool, len(h.present))
	for name, values := range h.present {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		said[canonical] = true
		if _, sealed := job.Sealed(values); sealed { // as only stored ones are
			d.AddError(job.JSONPointer(at, name), "must not contain line breaks or other control characters")
		}
		if old, kept := stored[canonical]; kept && job.SecretHeader(name) && isRedacted(values) {
			values = old
			h.checkOrigin(d, at, canonical)
		} else if job.SecretHeader(name) && isRedacted(values) {
			d.redactedPlaceholder(job.JSONPointer(at, name))
		}
		if values != nil {
			headers[name] = values
		}
	}
	for name, values := range stored {
		if !h.cleared && !said[name] && (merge || job.SecretHeader(name)) {
			h.checkOrigin(d, at, name)
			headers[name] = values
		}
	}
	if len(headers) == 0 {
		return nil
	}
	return headers
}

// ResendOnNewOrigin is said of a stored header that carries a secret, where the URL leads elsewhere.
const ResendOnNewOrigin = "must be resent (or set to null): the URL now points to a different origin"

// checkOrigin refuses to keep a stored header that carries a secret for another origin.
func (h *headerForm) checkOrigin(d *decoder, at, name string) {
	if h.moved && job.SecretHeader(name) {
		d.AddError(job.JSONPointer(at, name), ResendOnNewOrigin)
	}
}

// redactedPlaceholder refuses the stand-in for a secret where the secret must be: who reads, changes and sends back would overwrite
// the secret with it.
func (d *decoder) redactedPlaceholder(at string) {
	d.AddError(at, "is the placeholder of a redacted secret: send the secret itself")
}

// rejectRedacted refuses stand-ins among headers that are not put over others.
func (d *decoder) rejectRedacted(at string, headers map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if job.SecretHeader(name) && isRedacted(headers[name]) {
			d.redactedPlaceholder(job.JSONPointer(at, name))
		}
	}
}

func isRedacted(values []string) bool { return len(values) == 1 && values[0] == response.Redacted }
