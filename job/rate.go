package job

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/policy"
)

// perUnit are the windows that a rate may name by their unit alone.
var perUnit = map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": day}

// ParseRate reads a rate as the API writes it: a number of starts, a slash and the window, a duration or a unit alone:
// "100/s", "5/90s", "1000/1h30m". An empty text is no limit. The number is 1 to 1,000,000, the window 100 ms to 30 d. The
// error continues a sentence about the field.
func ParseRate(text string) (policy.Rate, error) {
	if text == "" {
		return policy.Rate{}, nil
	}
	number, window, ok := strings.Cut(text, "/")
	starts, err := strconv.Atoi(number)
	per, named := perUnit[window]
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
		return policy.Rate{}, fmt.Errorf("must be 1 to %d in 100ms to 30d", policy.MaxStarts)
	}
	return policy.Rate{Starts: starts, Per: per}, nil
}

// FormatRate writes a rate the way ParseRate reads it: "100/s", "5/1m30s"; empty for none.
func FormatRate(r policy.Rate) string {
	if !r.Limited() {
		return ""
	}
	for unit, per := range perUnit {
		if r.Per == per {
			return strconv.Itoa(r.Starts) + "/" + unit
		}
	}
	return strconv.Itoa(r.Starts) + "/" + FormatDuration(r.Per)
}
