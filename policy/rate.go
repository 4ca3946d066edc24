package policy

import "time"

// A Rate bounds how often something starts: at most Starts in any window of the length Per, all processes together. The
// zero value bounds nothing.
type Rate struct {
	Starts int           `json:"n,omitempty"`
	Per    time.Duration `json:"per,omitempty"`
}

// Limits of a rate, enforced where requests are validated.
const (
	MaxStarts = 1_000_000
	MinPer    = 100 * time.Millisecond
	MaxPer    = 30 * 24 * time.Hour
)

// Limited reports whether the rate bounds anything.
func (r Rate) Limited() bool { return r.Starts > 0 && r.Per > 0 }
