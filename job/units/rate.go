package units

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/policy"
)

// ratePeriods are the windows that are written as a unit without a number.
var ratePeriods = map[string]time.Duration{
	"ms": time.Millisecond, "s": time.Second, "m": time.Minute,
	"h": time.Hour, "d": day,
}

// ParseRate parses a rate: a number of starts, a slash and a window, which is a duration or a unit: "100/s", "5/90s",
// "1000/1h30m". Empty means no limit. The number is 1 to 1,000,000, the window 100 ms to 30 d.
func ParseRate(text string) (policy.Rate, error) {
	if text == "" {
		return policy.Rate{}, nil
	}
	number, window, ok := strings.Cut(text, "/")
	starts, err := strconv.Atoi(number)
	per, named := ratePeriods[window]
	if !named && ok {
		var bad error
		if per, bad = ParseDuration(window); bad != nil {
			ok = false
		}
	}
	if !ok || err != nil || !isDigit(number[0]) {
		return policy.Rate{}, fmt.Errorf("%.40q is not a rate such as 100/s or 5/90s", text)
	}
	if starts < 1 || starts > policy.MaxStarts || per < policy.MinPer || per > policy.MaxPer {
		return policy.Rate{}, fmt.Errorf("must be 1 to %d starts in a window of 100ms to 30d", policy.MaxStarts)
	}
	return policy.Rate{Starts: starts, Per: per}, nil
}

// FormatRate formats a rate for ParseRate: "100/s", "5/1m30s"; empty for no limit.
func FormatRate(r policy.Rate) string {
	if !r.Limited() {
		return ""
	}
	for unit, per := range ratePeriods {
		if r.Per == per {
			return strconv.Itoa(r.Starts) + "/" + unit
		}
	}
	return strconv.Itoa(r.Starts) + "/" + FormatDuration(r.Per)
}
