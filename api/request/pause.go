package request

import (
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// maxPauseBytes bounds the body of a pause, in bytes. A note of maximum length fits, however it is escaped.
const maxPauseBytes = 16 << 10

// ReadPause reads a request to pause a topic, a lane or a schedule, and returns its note. The body is optional.
func ReadPause(w http.ResponseWriter, r *http.Request) (note string, err error) {
	text, err := ReadOptionalJSON(w, r, maxPauseBytes)
	if err != nil || text == nil {
		return "", err
	}
	var d decoder
	d.read("", text, "a pause", fields{"note": set(&note, d.text)})
	if utf8.RuneCountInString(note) > policy.MaxPauseNote {
		d.AddError("/note", fmt.Sprintf("must be at most %d characters", policy.MaxPauseNote))
	}
	if p := d.problem(nil); p != nil {
		return "", p
	}
	return note, nil
}

// NewPause returns the pause that a request makes. A repeated one keeps the time of the first, and without a note it
// changes nothing.
func NewPause(r *http.Request, paused bool, stored policy.Pause, note string) policy.Pause {
	p := policy.Pause{At: job.Millis(time.Now()), By: PrincipalOf(r.Context()).Actor, Note: note}
	switch {
	case !paused || stored.At.IsZero():
		return p
	case note == "":
		return stored
	}
	p.At = stored.At
	return p
}
