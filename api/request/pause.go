package request

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/ringback/ringback/api/content"
	"github.com/ringback/ringback/policy"
)

// maxPauseBytes bounds the body of a pause, in bytes. A note of maximum length fits, however it is escaped.
const maxPauseBytes = 16 << 10

// ReadPause reads a request to pause a topic or a lane, and returns its note. The body is optional.
func ReadPause(w http.ResponseWriter, r *http.Request) (note string, err error) {
	text, err := content.ReadOptionalJSON(w, r, maxPauseBytes)
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
