package notify

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/policy"
)

// waitField is a header field that asks for a wait. A number without a unit counts unit.
type waitField struct {
	name string
	unit time.Duration
}

var (
	// retryFields are honoured with any status.
	retryFields = []waitField{
		{"Retry-After", time.Second}, {"Retry-After-Ms", time.Millisecond}, {"X-Ms-Retry-After-Ms", time.Millisecond},
	}
	// resetFields say when a limit is reset. They have no standard.
	resetFields = []waitField{
		{"X-Ratelimit-Reset", time.Second},
		{"X-Ratelimit-Reset-After", time.Second},
		{"Ratelimit-Reset", time.Second},
		{"X-Rate-Limit-Reset", time.Second},
	}
	// remainingFields say how many requests a limit still allows.
	remainingFields = []string{"X-Ratelimit-Remaining", "Ratelimit-Remaining", "X-Rate-Limit-Remaining"}
)

// maxWaitItems bounds the items of lists that are read in a response: each may be tried as a date of several forms.
const maxWaitItems = 16

// AskedWait returns the wait that a response requests, counted from now, the time of its receipt: 0 to
// policy.MaxRetryAfter, rounded up to milliseconds. Dates are judged against the Date of the response, since the
// receiver's clock may be wrong.
//
// It is the longest of the retryFields, with any status. Without a valid one, responses about a limit (429, 503, and
// 403 with nothing remaining) may have the time of the limit's reset, the longest of RateLimit and the resetFields.
func AskedWait(status int, h http.Header, now time.Time) time.Duration {
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	if wait, ok := longestWait(h, retryFields, now); ok {
		return wait
	}
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		reset, _ := longestWait(h, resetFields, now)
		used, open, _ := rateLimit(h)
		if used == 0 {
			used = open
		}
		return max(reset, used)
	case http.StatusForbidden:
		used, _, isUsed := rateLimit(h)
		for _, name := range remainingFields {
			isUsed = isUsed || h.Get(name) == "0"
		}
		if isUsed {
			reset, _ := longestWait(h, resetFields, now)
			return max(reset, used)
		}
	}
	return 0
}

// longestWait returns the longest wait of header fields, which may be lists and have several lines; false: none is
// valid.
func longestWait(h http.Header, fields []waitField, now time.Time) (longest time.Duration, found bool) {
	add := func(value string, unit time.Duration) bool {
		wait, ok := parseWait(value, unit, now)
		longest, found = max(longest, wait), found || ok
		return ok
	}
	left := maxWaitItems
	for _, field := range fields {
		for _, line := range h.Values(field.name) {
			items := strings.SplitN(line, ",", left+1)
			for i, item := range items[:min(len(items), left)] {
				if !add(item, field.unit) && i+1 < len(items) {
					add(item+","+items[i+1], field.unit) // an HTTP date has a comma
				}
			}
			left -= min(len(items), left)
		}
	}
	return longest, found
}

// dateLayouts are forms of dates besides those of HTTP.
var dateLayouts = []string{time.RFC3339, "2006-01-02T15:04Z07:00"}

// From these values on, seconds without a unit are a Unix time (from 2001) in seconds or milliseconds instead of a
// wait.
const (
	unixSeconds = 1e9
	unixMillis  = 1e12
)

// parseWait parses a wait: an HTTP date, one of dateLayouts, a Unix time, or durations such as "8.5", "8 s" or "1m30s".
func parseWait(value string, unit time.Duration, now time.Time) (wait time.Duration, ok bool) {
	value = strings.Trim(value, " \t\"")
	if at, err := http.ParseTime(value); err == nil {
		return boundWait(at.Sub(now).Seconds()), true
	}
	for _, layout := range dateLayouts {
		if at, err := time.Parse(layout, value); err == nil {
			return boundWait(at.Sub(now).Seconds()), true
		}
	}
	seconds, hasUnit, ok := parseSeconds(strings.TrimPrefix(value, "+"), unit)
	switch {
	case !ok:
		return 0, false
	case hasUnit || unit != time.Second:
	case seconds >= unixMillis:
		seconds = seconds/1000 - unixOf(now)
	case seconds >= unixSeconds:
		seconds -= unixOf(now)
	}
	return boundWait(seconds), true
}

// units are the units of durations, in lower case.
var units = map[string]time.Duration{
	"ms": time.Millisecond, "millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour,
}

// parseSeconds parses a number of a unit, or a sum of numbers with units. They have no sign and no exponent.
func parseSeconds(value string, unit time.Duration) (seconds float64, hasUnit, ok bool) {
	for first := true; first || value != ""; first = false {
		rest := strings.TrimLeft(value, "0123456789.")
		number, err := strconv.ParseFloat(value[:len(value)-len(rest)], 64)
		if err != nil && !math.IsInf(number, 1) {
			return 0, false, false
		}
		rest = strings.TrimLeft(rest, " ")
		value = strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
		if name := rest[:len(rest)-len(value)]; name != "" {
			if unit, hasUnit = units[strings.ToLower(name)]; !hasUnit {
				return 0, false, false
			}
		} else if !first || value != "" {
			return 0, false, false
		}
		seconds += number * unit.Seconds()
		value = strings.TrimLeft(value, " ")
	}
	return seconds, hasUnit, true
}

// boundWait returns seconds as a wait of 0 to policy.MaxRetryAfter, rounded up to milliseconds. A Unix time in float64
// is precise to less than a microsecond, which does not count. Bounded as seconds, to avoid an overflow of Duration.
func boundWait(seconds float64) time.Duration {
	seconds = min(max(seconds, 0), policy.MaxRetryAfter.Seconds())
	return time.Duration(math.Ceil(seconds*1e3-1e-3)) * time.Millisecond
}

// unixOf returns t in Unix seconds.
func unixOf(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// rateLimit parses RateLimit, a list of limits with the parameters r (remaining) and t (seconds until the reset), as in
// draft-ietf-httpapi-ratelimit-headers-10, or of one limit with the members remaining and reset, as in its version 07.
// used is the longest wait of limits with nothing remaining, open that of the others.
func rateLimit(h http.Header) (used, open time.Duration, isUsed bool) {
	for _, line := range h.Values("RateLimit") {
		remaining, reset := "", time.Duration(0)
		end := func() {
			if remaining == "0" {
				used, isUsed = max(used, reset), true
			} else {
				open = max(open, reset)
			}
			remaining, reset = "", 0
		}
		for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ',' || r == ';' }) {
			name, value, isParameter := strings.Cut(strings.Trim(part, " \t"), "=")
			switch {
			case !isParameter: // the name of the next limit
				end()
			case name == "r" || name == "remaining":
				remaining = value
			case name == "t" || name == "reset":
				reset, _ = parseWait(value, time.Second, time.Time{})
			}
		}
		end()
	}
	return used, open, isUsed
}
