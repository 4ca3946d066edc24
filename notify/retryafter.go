package notify

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/policy"
)

// AskedWait returns the wait that a response requests, counted from now, the time of its receipt: 0 to policy.MaxRetryAfter.
// It is Retry-After with any status. Without a valid one, responses about a limit (429, 503, and 403 with nothing
// remaining) may have the time of the limit's reset.
func AskedWait(status int, h http.Header, now time.Time) time.Duration {
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

// retryAfter parses a Retry-After field (RFC 9110 §10.2.3), seconds or an HTTP date, as a wait; 0 for a past date.
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

// retrySeconds parses any number of digits, without sign or fraction.
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

// From these values on, a reset is a Unix time (from 2001) in seconds or milliseconds instead of a wait.
const (
	unixSeconds = 1e9
	unixMillis  = 1e12
)

// limitReset parses the fields with the time of a limit's reset, which have no standard: seconds from now, Unix seconds or
// milliseconds, with an optional fraction.
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
	// Bounded as seconds, to avoid an overflow of Duration.
	seconds = min(max(seconds, 0), policy.MaxRetryAfter.Seconds())
	return time.Duration(seconds * float64(time.Second)), true
}

// unixOf returns t in Unix seconds, precise to about a microsecond.
func unixOf(now time.Time) float64 { return float64(now.UnixMicro()) / 1e6 }
