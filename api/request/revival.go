package request

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// maxRevivalBytes bounds the body of a revival, in bytes.
const maxRevivalBytes = 4 << 10

// ReadRevival reads a request to revive one job. The body is optional.
func ReadRevival(w http.ResponseWriter, r *http.Request) (store.Revival, error) {
	ref, err := PathJob(r)
	if err == nil {
		err = RequireNoIfMatch(r)
	}
	revival := store.Revival{Ref: ref}
	if err != nil {
		return revival, err
	}
	text, err := ReadOptionalJSON(w, r, maxRevivalBytes)
	if err != nil || text == nil {
		return revival, err
	}
	var d decoder
	d.read("", text, "a revival", fields{
		"delay":      set(&revival.Delay, d.duration),
		"expires_in": set(&revival.ExpiresIn, d.positiveDuration),
	})
	if p := d.problem(job.Validate(job.New{Delay: revival.Delay, ExpiresIn: revival.ExpiresIn}, time.Time{})); p != nil {
		return revival, p
	}
	return revival, nil
}
