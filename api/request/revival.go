package request

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// maxRevivalBytes bounds the body of a revival, in bytes: headers and a URL with every byte escaped.
const maxRevivalBytes = 256 << 10

// ReadRevival reads a request to revive one job. The body is optional.
func ReadRevival(w http.ResponseWriter, r *http.Request) (store.Revival, error) {
	ref, err := PathJob(r)
	revival := store.Revival{Ref: ref}
	if err == nil {
		revival.IfVersion, err = IfMatch(r)
	}
	if err != nil {
		return revival, err
	}
	text, err := ReadOptionalJSON(w, r, maxRevivalBytes)
	if err != nil || text == nil {
		return revival, err
	}
	var d decoder
	d.read("", text, "a revival", d.revivalFields(&revival))
	d.rejectRedacted("/headers", revival.Header)
	n := job.New{
		Spec: job.Spec{URL: revival.URL, Header: revival.Header}, Delay: revival.Delay,
		ExpiresIn: revival.ExpiresIn,
	}
	if p := d.problem(job.Validate(n, time.Time{})); p != nil {
		return revival, p
	}
	revival.Header = job.CanonicalHeader(revival.Header)
	return revival, nil
}

// revivalFields returns the readers of the fields that a revival changes.
func (d *decoder) revivalFields(revival *store.Revival) fields {
	return fields{
		"delay":      set(&revival.Delay, d.duration),
		"expires_in": set(&revival.ExpiresIn, d.positiveDuration),
		"url":        set(&revival.URL, d.name),
		"headers": func(at string, raw []byte) {
			revival.Header = map[string][]string{} // null removes them
			if !isNull(raw) {
				revival.Header = d.headers(at, raw)
			}
		},
	}
}
