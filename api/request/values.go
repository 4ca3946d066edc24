package request

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
)

// text reads a string.
func (d *decoder) text(at string, raw []byte) string {
	text, ok := Text(raw)
	if !ok {
		d.wrongType(at, raw, "a string")
	}
	return text
}

// name reads a string that must not be empty.
func (d *decoder) name(at string, raw []byte) string {
	s := d.text(at, raw)
	if string(raw) == `""` {
		d.AddError(at, "must not be empty: leave it out instead")
	}
	return s
}

// boolean reads a boolean.
func (d *decoder) boolean(at string, raw []byte) bool {
	if raw[0] != 't' && raw[0] != 'f' {
		d.wrongType(at, raw, "a boolean")
	}
	return raw[0] == 't'
}

// integer reads an integer. Numbers such as 1e3 are allowed.
func (d *decoder) integer(at string, raw []byte) int64 {
	if !isNumber(raw) {
		d.wrongType(at, raw, "a whole number")
		return 0
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	const exact = 1 << 53
	if err != nil || f != float64(int64(f)) || f > exact || f < -exact {
		d.AddError(at, "must be a whole number within ±2^53")
		return 0
	}
	return int64(f)
}

// number reads a number.
func (d *decoder) number(at string, raw []byte) float64 {
	if !isNumber(raw) {
		d.wrongType(at, raw, "a number")
		return 0
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		d.AddError(at, "is too large a number")
	}
	return f
}

// duration reads a duration: a string such as "1h30m", or a number of seconds.
func (d *decoder) duration(at string, raw []byte) time.Duration {
	var span time.Duration
	var err error
	switch {
	case raw[0] == '"':
		span, err = units.ParseDuration(Unquote(raw))
	case isNumber(raw):
		span, err = units.ParseSeconds(string(raw))
	default:
		d.wrongType(at, raw, `a duration such as "1h30m", or a number of seconds`)
	}
	if err != nil {
		d.AddError(at, err.Error())
		return 0
	}
	return span
}

// size reads a size: a string such as "256MiB", or a number of bytes.
func (d *decoder) size(at string, raw []byte) int64 {
	if raw[0] != '"' {
		return d.integer(at, raw)
	}
	n, err := units.ParseSize(Unquote(raw))
	if err != nil {
		d.AddError(at, err.Error())
	}
	return n
}

// time reads a time. The zero time, which means unset, is read as the instant after it.
func (d *decoder) time(at string, raw []byte) time.Time {
	text := d.text(at, raw)
	if raw[0] != '"' {
		return time.Time{}
	}
	t, ok := parseTime(text)
	if !ok {
		d.AddError(at, timeRule)
		return time.Time{}
	}
	if t.IsZero() {
		t = t.Add(time.Millisecond)
	}
	return t
}

// timeRule says which times parseTime reads.
const timeRule = "must be a time as in RFC 3339 in the years 1 to 9999 in UTC, such as 2030-01-31T08:00:00Z"

// parseTime reads a time, in UTC: time.Parse reads offsets and years that JSON cannot show.
func parseTime(text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, text)
	t = t.UTC()
	return t, err == nil && t.Year() >= 1 && t.Year() <= 9999
}

// rate reads a rate such as "100/s"; empty means no limit.
func (d *decoder) rate(at string, raw []byte) policy.Rate {
	rate, err := units.ParseRate(d.text(at, raw))
	if err != nil {
		d.AddError(at, err.Error())
	}
	return rate
}

// ladder reads an array of durations; never nil.
func (d *decoder) ladder(at string, raw []byte) policy.Ladder {
	rungs := make(policy.Ladder, 0, 8)
	if raw[0] != '[' {
		d.wrongType(at, raw, "an array of durations")
		return nil
	}
	for i, value := range Elements(raw) {
		switch {
		case i == maxEntries:
			return rungs
		case value[0] == '"' || isNumber(value):
			before := len(d.errors)
			rungs = append(rungs, d.duration("", value))
			if len(d.errors) > before {
				d.errors[before].Field = at + "/" + strconv.Itoa(i)
			}
		default:
			d.wrongType(at+"/"+strconv.Itoa(i), value, "a duration")
			rungs = append(rungs, 0)
		}
	}
	return rungs
}

// texts reads an array of strings; never nil.
func (d *decoder) texts(at string, raw []byte) []string {
	all := []string{}
	if raw[0] != '[' {
		d.wrongType(at, raw, "an array of strings")
		return all
	}
	for i, value := range Elements(raw) {
		if i == maxEntries {
			return all
		}
		if text, ok := Text(value); ok {
			all = append(all, text)
		} else {
			d.wrongType(at+"/"+strconv.Itoa(i), value, "a string")
		}
	}
	return all
}

// labels reads an object of strings; never nil.
func (d *decoder) labels(at string, raw []byte) map[string]string {
	all := make(map[string]string)
	for name, value := range d.object(at, raw) {
		if len(all) > job.MaxLabels { // too many, which is refused later
			break
		}
		if text, ok := Text(value); ok {
			all[string(name)] = text
		} else {
			d.wrongType(job.JSONPointer(at, string(name)), value, "a string")
		}
	}
	return all
}

// headers reads headers, each a string or an array of strings; never nil. Names are canonicalized after validation.
func (d *decoder) headers(at string, raw []byte) map[string][]string {
	all := make(map[string][]string)
	lines := 0
	for name, value := range d.object(at, raw) {
		if lines > job.MaxHeaderLines { // too many, which is refused later
			break
		}
		values := d.header(at, name, value)
		all[string(name)] = values
		lines += max(len(values), 1)
	}
	return all
}

// header reads the values of one header.
func (d *decoder) header(at string, name, value []byte) []string {
	switch value[0] {
	case '"':
		if text, ok := Text(value); ok {
			return []string{text}
		}
	case '[':
		return d.texts(job.JSONPointer(at, string(name)), value)
	}
	d.wrongType(job.JSONPointer(at, string(name)), value, "a string or an array of strings")
	return nil
}

// base64 reads bytes: standard base64 (RFC 4648), padded or not.
func (d *decoder) base64(at string, raw []byte) []byte {
	text := d.text(at, raw)
	encoding := base64.StdEncoding
	if !strings.HasSuffix(text, "=") {
		encoding = base64.RawStdEncoding
	}
	b, err := encoding.DecodeString(text)
	if err != nil {
		d.AddError(at, "must be standard base64 (RFC 4648, section 4)")
		return nil
	}
	return b
}
