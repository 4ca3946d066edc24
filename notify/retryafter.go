package notify

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/policy"
)

// askedWait is how long an answer asks to be left alone, counted from now, which is when it was received: 0 to
// policy.MaxRetryAfter. Retry-After says so, whatever the status. Where that is missing or cannot be read, an answer that
// speaks of a limit (429, 503, and 403 with nothing remaining) may say when the limit is lifted.
func askedWait(status int, h http.Header, now time.Time) time.Duration {
	if wait, ok := retryAfter(h.Get("Retry-After"), now); ok {
		return wait
	}
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
	case http.StatusForbidden:
		if h.Get("X-Ratelimit-Remaining") != "0" && h.Get("Ratelimit-Remaining") != "0" {
			return 0
		}
	default:
		return 0
	}
	for _, name := range []string{"X-Ratelimit-Reset", "Ratelimit-Reset"} {
		if wait, ok := limitReset(h.Get(name), now); ok {
			return wait
		}
	}
	return 0
}

// retryAfter reads a Retry-After field (RFC 9110 §10.2.3), either seconds or an HTTP date, as a wait. A date that has
// passed is no wait, 0.
func retryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.Trim(value, " \t")
	if value == "" {
		return 0, false
	}
	if wait, ok := retrySeconds(value); ok {
		return wait, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), policy.MaxRetryAfter), true
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

// From these numbers on a reset is an instant rather than a wait: in Unix seconds (from 2001 on), in milliseconds.
const (
	unixSeconds = 1e9
	unixMillis  = 1e12
)

// limitReset reads the fields that say when a limit is lifted, which no standard defines: seconds from now, Unix seconds
// or milliseconds, with or without a fraction.
func limitReset(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.Trim(value, " \t")
	if value == "" || value[0] == '.' || strings.Trim(value, "0123456789.") != "" {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, false
	}
	switch {
	case seconds >= unixMillis:
		seconds = seconds/1000 - unixOf(now)
	case seconds >= unixSeconds:
		seconds -= unixOf(now)
	}
	// Bounded as seconds, since more of them do not fit into a duration.
	seconds = min(max(seconds, 0), policy.MaxRetryAfter.Seconds())
	return time.Duration(seconds * float64(time.Second)), true
}

// unixOf is the time in Unix seconds, to about a microsecond.
func unixOf(now time.Time) float64 { return float64(now.UnixMicro()) / 1e6 }
