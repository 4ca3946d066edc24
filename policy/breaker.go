package policy

import (
	"cmp"
	"time"
)

// Breaker configures a lane's circuit breaker. While it is open, the lane's jobs are not attempted and spend no
// retries. Then one probe is attempted, whose result closes the breaker or opens it again.
type Breaker struct {
	// Failures is the number of network errors, timeouts and answers with 502 to 504, 520 to 530, 598 and 599 in a row
	// that open it. 0: it never opens. Default: 10.
	//
	// They are those of Result.Unavailable.
	Failures *int `json:"failures,omitempty" api:"failures" validate:"omitnil,failures"`
	// Open is for how long. Default: 30s.
	Open time.Duration `json:"open,omitempty" api:"open" validate:"omitempty,open"`
}

// Limits of a breaker, enforced by job.ValidateTopic.
const (
	MaxFailures = 1_000_000
	MinOpen     = time.Second
	MaxOpen     = time.Hour
)

func (b Breaker) withDefaults(base Breaker) Breaker {
	return Breaker{Failures: cmp.Or(b.Failures, base.Failures), Open: cmp.Or(b.Open, base.Open)}
}

// Unavailable reports whether the receiver is unavailable: no response, or a status that says so. These are 502 to 504,
// and those of proxies and CDNs whose server is away, 520 to 530, 598 and 599. It counts for the breaker.
func (r Result) Unavailable() bool {
	switch r.Class {
	case ClassNone:
		return r.Status >= 502 && r.Status <= 504 || r.Status >= 520 && r.Status <= 530 || r.Status == 598 ||
			r.Status == 599
	case ClassBlocked, ClassInvalid, ClassNoURL, ClassShutdown, ClassLocalResources, ClassConsumer:
		return false
	default:
		return true
	}
}

// Throttled reports whether the response asks for fewer requests: 429 and 503.
func (r Result) Throttled() bool { return r.Class == ClassNone && (r.Status == 429 || r.Status == 503) }
