package notify

import (
	"net/http"
	"strings"
	"time"

	"github.com/ringback/ringback/policy"
)

// retryAfter reads a Retry-After field (RFC 9110 §10.2.3), either seconds or an HTTP date, as a wait from now, which is
// when the answer was received. The wait is 0 to policy.MaxRetryAfter; what cannot be read, or has passed, is 0.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.Trim(value, " \t")
	if value == "" {
		return 0
	}
	if wait, ok := retrySeconds(value); ok {
		return wait
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), policy.MaxRetryAfter)
}

// retrySeconds reads digits alone: no sign, no fraction, and however many there are.
func retrySeconds(value string) (time.Duration, bool) {
	var wait time.Duration
	for i := range len(value) {
		if value[i] < '0' || value[i] > '9' {
			return 0, false
		}
		// Capped at each digit, so that it cannot overflow.
		wait = min(wait*10+time.Duration(value[i]-'0')*time.Second, policy.MaxRetryAfter)
	}
	return wait, true
}
