package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// FormatDuration returns a duration as the API reads it, rounded up to milliseconds.
func FormatDuration(d time.Duration) string {
	if rest := d % time.Millisecond; rest > 0 {
		d += time.Millisecond - rest
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// day is the unit d.
const day = 24 * time.Hour

// parseDuration reads a duration as the API writes it: 2d2h, 15s, 250ms, or seconds as a number.
func parseDuration(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	days, rest, has := strings.Cut(text, "d")
	if !has {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration", text)
		}
		return d, nil
	}
	n, err := strconv.ParseInt(days, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	d := time.Duration(n) * day
	if rest != "" {
		more, err := time.ParseDuration(rest)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration", text)
		}
		d += more
	}
	return d, nil
}
