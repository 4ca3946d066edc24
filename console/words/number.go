package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Number returns n exactly, with commas between thousands: "12,400".
func Number(n int64) string { return group(strconv.FormatInt(n, 10)) }

// group puts commas between the thousands of a decimal number without an exponent.
func group(digits string) string {
	sign, whole, fraction := "", digits, ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	if i := strings.IndexByte(whole, '.'); i >= 0 {
		whole, fraction = whole[:i], whole[i:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + whole + fraction
}

// Count returns an exact number of things: "0 jobs", "1 job", "12,400 dead jobs". The noun is singular and the last
// word of what is counted; its plural is made by the regular rules of English: lanes, retries, processes.
func Count(n int64, noun string) string {
	if n != 1 && n != -1 {
		noun = plural(noun)
	}
	return Number(n) + " " + noun
}

// plural returns the regular plural of a noun.
func plural(noun string) string {
	for _, sibilant := range []string{"s", "x", "z", "ch", "sh"} {
		if strings.HasSuffix(noun, sibilant) {
			return noun + "es"
		}
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && stem != "" && !strings.ContainsAny(stem[len(stem)-1:], "aeiou") {
		return stem + "ies"
	}
	return noun + "s"
}

// Verb returns the form of a verb for a number of things: of "ends" and "end" the first for 1.
func Verb(n int64, singular, plural string) string {
	if n == 1 || n == -1 {
		return singular
	}
	return plural
}

// CountVerb returns a number of things with the verb that agrees with it: "1 job waits", "2 jobs wait".
func CountVerb(n int64, noun, singular, plural string) string {
	return Count(n, noun) + " " + Verb(n, singular, plural)
}

// Decimal returns a measured value: integers from 100 on, one decimal place from 10 on, else two significant digits,
// without trailing zeros: "1,204", "12.5", "0.031". It returns "unknown" for what is no number.
func Decimal(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "unknown"
	}
	var text string
	switch size := math.Abs(v); {
	case size >= 99.95:
		text = strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 9.95:
		text = trimZeros(strconv.FormatFloat(v, 'f', 1, 64))
	default:
		decimals := 1
		for limit := 0.995; size > 0 && size < limit && decimals < 12; limit /= 10 {
			decimals++
		}
		text = trimZeros(strconv.FormatFloat(v, 'f', decimals, 64))
	}
	if text == "-0" {
		text = "0"
	}
	return group(text)
}

// trimZeros removes the zeros at the end of a decimal fraction.
func trimZeros(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Rate returns a number of events per second: "1,204/s", "12.5/s", "0.3/s". Rates below 0.01/s that are not 0 are
// "<0.01/s". It returns "unknown" for a negative rate and for what is no number.
func Rate(perSecond float64) string {
	switch {
	case math.IsNaN(perSecond) || math.IsInf(perSecond, 0) || perSecond < 0:
		return "unknown"
	case perSecond > 0 && perSecond < 0.01:
		return "<0.01/s"
	}
	return Decimal(perSecond) + "/s"
}

// Bytes returns a size in the largest binary unit in which it is at least 1: "512 B", "1.5 KiB", "12 MiB". It is
// rounded to one decimal place below 10, else to an integer.
func Bytes(n int64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	sign, size, unit := "", float64(n), 0
	if n < 0 {
		sign, size = "-", -size
	}
	for unit+1 < len(units) && (size >= 1024 || unit > 0 && math.Round(size) >= 1024) {
		size /= 1024
		unit++
	}
	text := strconv.FormatFloat(math.Round(size), 'f', 0, 64)
	if size < 9.95 {
		text = trimZeros(strconv.FormatFloat(size, 'f', 1, 64))
	}
	return fmt.Sprintf("%s%s %s", sign, group(text), units[unit])
}
