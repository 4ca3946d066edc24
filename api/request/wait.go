package request

import (
	"net/http"
	"strings"
	"time"

	"github.com/ringback/ringback/job/units"
)

// MaxWait is the longest wait for the end of a job.
const MaxWait = time.Minute

// Wait reads the parameter wait: how long the answer waits for the end of the job. ok is false if there is none.
func Wait(r *http.Request) (wait time.Duration, ok bool, err error) {
	if r.URL.RawQuery == "" {
		return 0, false, nil
	}
	q := NewQuery(r)
	wait, ok = q.wait()
	return wait, ok, q.Err()
}

// wait reads the parameter wait, a duration or a number of seconds. It returns 0 for an invalid one.
func (q *Query) wait() (wait time.Duration, ok bool) {
	if !q.values.Has("wait") {
		return 0, false
	}
	text := q.Get("wait")
	wait, err := units.ParseDuration(text)
	if err != nil && text != "" && strings.Trim(text, "0123456789.") == "" {
		wait, err = units.ParseSeconds(text)
	}
	if err != nil || wait < 0 || wait > MaxWait {
		q.AddError("?wait", "must be a duration from 0s to 60s, such as 30s")
		return 0, true
	}
	return wait, true
}
