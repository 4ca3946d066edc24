package policy

import "time"

// Breaker says when a lane's breaker opens, and for how long. While it is open, the lane's jobs are not attempted and
// spend no retries; then a single one is, and what comes of it closes the breaker or opens it again.
type Breaker struct {
	// Failures in a row open it: network errors, timeouts, and the statuses 502 to 504. 0: it never opens; nil: 10.
	Failures *int `json:"failures,omitempty"`
	// Open is for how long, 1 s to 1 h; zero: 30 s.
	Open time.Duration `json:"open,omitempty"`
}

// Limits of a breaker, enforced where requests are validated.
const (
	MaxFailures = 1_000_000
	MinOpen     = time.Second
	MaxOpen     = time.Hour
)

func (b Breaker) withDefaults(base Breaker) Breaker {
	if b.Failures == nil {
		b.Failures = base.Failures
	}
	if b.Open == 0 {
		b.Open = base.Open
	}
	return b
}

// Unavailable reports whether a result says that the receiver, rather than the job, is in trouble: nobody was there to answer,
// or a proxy before it said so.
func (r Result) Unavailable() bool {
	switch r.Class {
	case ClassNone:
		return r.Status >= 502 && r.Status <= 504
	case ClassBlocked, ClassInvalid, ClassShutdown, ClassLocalResources:
		return false
	default:
		return true
	}
}

// Throttled reports whether an answer asks for fewer requests: 429 and 503.
func (r Result) Throttled() bool { return r.Class == ClassNone && (r.Status == 429 || r.Status == 503) }
