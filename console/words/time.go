package words

import (
	"strings"
	"time"
)

// layouts are how people write times, and how the console's own pages do. Those without a zone are UTC. Go reads
// fractions of a second after the seconds of any of them.
var layouts = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly}

// ParseTime parses a time as people write it: RFC 3339, also without seconds and with a space for the T, without a zone
// or with UTC after a space for UTC; or a date. ok is false for other texts. Spaces around it are ignored.
func ParseTime(text string) (t time.Time, ok bool) {
	text = strings.ToUpper(strings.TrimSpace(text))
	local, isUTC := strings.CutSuffix(text, " UTC")
	text = strings.Replace(strings.TrimSpace(local), " ", "T", 1)
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil && (!isUTC || !strings.HasSuffix(layout, "Z07:00")) {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
