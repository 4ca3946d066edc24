package policy

import "time"

// Rate is a rate limit: at most Starts attempts start in any window of length Per, over all processes. The zero value is
// no limit.
type Rate struct {
	Starts int           `json:"n,omitempty"`
	Per    time.Duration `json:"per,omitempty"`
}

// Limits of a rate, enforced by units.ParseRate.
const (
	MaxStarts = 1_000_000
	MinPer    = 100 * time.Millisecond
	MaxPer    = 30 * 24 * time.Hour
)

// Limited reports whether the rate is a limit.
func (r Rate) Limited() bool { return r.Starts > 0 && r.Per > 0 }

// or returns r if it is a limit, else base.
func (r Rate) or(base Rate) Rate {
	if r.Limited() {
		return r
	}
	return base
}
