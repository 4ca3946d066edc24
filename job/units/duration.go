// Package units reads and writes durations, sizes and rates as clients spell them: "1h30m", "256MiB", "100/s".
//
// Texts of errors follow the name of a field. The package keeps no state.
package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// day is 24 hours, independent of the calendar.
const day = 24 * time.Hour

// maxMillis is the longest duration in milliseconds, about 292 years.
const maxMillis = math.MaxInt64 / int64(time.Millisecond)

// errTooLong is the error of durations beyond maxMillis.
var errTooLong = errors.New("is longer than 292 years")

// units are the units of durations in descending order, in milliseconds.
var units = [...]struct {
	name   string
	millis int64
}{{"d", 86_400_000}, {"h", 3_600_000}, {"m", 60_000}, {"s", 1000}, {"ms", 1}}

// ParseDuration parses a duration: numbers with the units d, h, m, s and ms in descending order, each at most once, the
// last one with optional decimals: "90s", "1h30m", "7d", "2d2h", "1.5s". A day is 24 h. A leading minus is accepted, so
// that range checks can report it. The result is rounded to whole milliseconds.
func ParseDuration(text string) (time.Duration, error) {
	rest, negative := strings.CutPrefix(text, "-")
	if rest == "" {
		return 0, errNotDuration(text)
	}
	var total int64
	for unit := 0; rest != ""; unit++ {
		part, after, err := parseQuantity(rest)
		if err != nil {
			return 0, err
		}
		for unit < len(units) && units[unit].name != part.unit {
			unit++
		}
		if unit == len(units) || (part.decimals && after != "") {
			return 0, errNotDuration(text)
		}
		millis, ok := part.millis(units[unit].millis)
		if !ok || millis > maxMillis-total {
			return 0, errTooLong
		}
		total, rest = total+millis, after
	}
	if negative {
		total = -total
	}
	return time.Duration(total) * time.Millisecond, nil
}

func errNotDuration(text string) error {
	const longest = 40
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return fmt.Errorf("%q is not a duration such as 90s, 1h30m, 2d or 250ms", text)
}

// quantity is one number with its unit.
type quantity struct {
	whole    int64
	fraction int64 // in billionths
	decimals bool
	unit     string
}

const billion = 1_000_000_000

// parseQuantity parses the first number with its unit and returns the rest.
func parseQuantity(text string) (p quantity, rest string, err error) {
	i := 0
	for ; i < len(text) && isDigit(text[i]); i++ {
		if p.whole > maxMillis/10 {
			return p, "", errTooLong
		}
		p.whole = p.whole*10 + int64(text[i]-'0')
	}
	if i == 0 {
		return p, "", errNotDuration(text)
	}
	if i < len(text) && text[i] == '.' {
		p.decimals = true
		first := i + 1
		scale := int64(billion / 10)
		for i = first; i < len(text) && isDigit(text[i]); i++ {
			p.fraction += int64(text[i]-'0') * scale
			scale /= 10
		}
		if i == first {
			return p, "", errNotDuration(text)
		}
	}
	end := i
	for end < len(text) && !isDigit(text[end]) {
		end++
	}
	p.unit = text[i:end]
	return p, text[end:], nil
}

// millis returns the quantity in milliseconds, given its unit's; ok is false if it is too long.
func (p quantity) millis(unit int64) (millis int64, ok bool) {
	if p.whole > maxMillis/unit {
		return 0, false
	}
	millis = p.whole * unit
	more := (p.fraction*unit + billion/2) / billion
	if more > maxMillis-millis {
		return 0, false
	}
	return millis + more, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// ParseSeconds parses a JSON number of seconds, rounded to whole milliseconds.
func ParseSeconds(number string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(number, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("is not a number of seconds: %w", err)
	}
	millis := math.Round(seconds * 1000)
	if !(math.Abs(millis) < float64(maxMillis)) {
		return 0, errTooLong
	}
	return time.Duration(millis) * time.Millisecond, nil
}

// FormatDuration formats a duration for ParseDuration, in whole milliseconds: "2d2h", "15s", "1.5s", "250ms", "0s".
func FormatDuration(d time.Duration) string { return string(AppendDuration(nil, d)) }

// AppendDuration appends FormatDuration(d).
func AppendDuration(to []byte, d time.Duration) []byte {
	rest := uint64(d.Milliseconds())
	if d.Milliseconds() < 0 {
		to = append(to, '-')
		rest = -rest
	}
	if rest == 0 {
		return append(to, "0s"...)
	}
	for _, u := range units {
		n := rest / uint64(u.millis)
		if n == 0 {
			continue
		}
		rest %= uint64(u.millis)
		to = strconv.AppendUint(to, n, 10)
		if u.name == "s" && rest > 0 {
			to = appendDecimals(to, rest)
			rest = 0
		}
		to = append(to, u.name...)
	}
	return to
}

// appendDecimals appends thousandths as decimals without trailing zeros.
func appendDecimals(to []byte, millis uint64) []byte {
	to = append(to, '.', byte('0'+millis/100), byte('0'+millis/10%10), byte('0'+millis%10))
	for to[len(to)-1] == '0' {
		to = to[:len(to)-1]
	}
	return to
}
