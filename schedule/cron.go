package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/cronexpr"
)

// cron is a cron text in a time zone.
type cron struct {
	expr   cronexpr.Expression
	fields [len(fields)]string // normalized
	hourly bool                // every hour matches
	zone   *time.Location
}

// macros are the texts that macros stand for.
var macros = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

// parseCron returns the cron of a text without its time zone.
//
// It reads every field itself, and gives the library nothing but plain values, `*` and the forms with L, W and #. The
// library does not report everything that it misunderstands: it panics at an empty range, ends 1-7 and FRI-SUN on
// Saturday, reads the weekday 05 as Sunday and ignores what follows the seventh field.
func parseCron(text string) (*cron, error) {
	if len(text) > MaxCron {
		return nil, fmt.Errorf("must be at most %d B", MaxCron)
	}
	text = strings.ToLower(strings.TrimSpace(text))
	if strings.HasPrefix(text, "@") {
		expanded, ok := macros[text]
		if !ok {
			return nil, errors.New("is not one of @yearly, @monthly, @weekly, @daily and @hourly; for intervals use " +
				"the field every")
		}
		text = expanded
	}
	if name, _, ok := strings.Cut(text, "="); ok && strings.HasSuffix(name, "tz") {
		return nil, errors.New("must not contain a time zone: use the field timezone")
	}
	parts := strings.Fields(text)
	if len(parts) != len(fields) {
		return nil, fmt.Errorf("has %d fields, and must have 5: minute, hour, day of month, month, day of week",
			len(parts))
	}
	for i, f := range fields {
		plain, err := f.normalize(parts[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		parts[i] = plain
	}
	expr, err := cronexpr.Parse(strings.Join(parts, " "))
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	if expr.Next(earliest.Add(-1)).IsZero() {
		return nil, errors.New("never runs: none of its months has such a day")
	}
	return &cron{expr: *expr, fields: [len(fields)]string(parts), hourly: parts[1] == "*"}, nil
}

// field is one of the five fields of a cron text.
type field struct {
	name       string
	least, top int
	names      []string // of the values from least on, in lower case
	values     string   // for people
}

// The fields whose rules differ from those of the others.
const (
	dayHour  = "hour"
	monthday = "day of month"
	weekday  = "day of week"
)

var fields = [...]field{
	{name: "minute", least: 0, top: 59, values: "numbers from 0 to 59"},
	{name: dayHour, least: 0, top: 23, values: "numbers from 0 to 23"},
	{name: monthday, least: 1, top: 31, values: "numbers from 1 to 31, L, LW and days with W such as 15W"},
	{
		name: "month", least: 1, top: 12, values: "numbers from 1 to 12 and JAN to DEC",
		names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
	},
	{
		name: weekday, least: 0, top: 6,
		values: "numbers from 0 to 7, SUN to SAT, and days with L or # such as FRIL and FRI#2",
		names:  []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"},
	},
}

// normalize returns the field's text as `*`, or as a list of numbers and forms with L, W and #. Days of the week are 0
// to 6 then.
func (f field) normalize(text string) (string, error) {
	var list []string
	values := make(map[int]bool)
	all := false
	for entry := range strings.SplitSeq(text, ",") {
		if form, ok := f.parseSpecial(entry); ok {
			list = append(list, form)
			continue
		}
		r, err := f.parseRange(entry)
		if err != nil {
			return "", err
		}
		all = all || (strings.HasPrefix(entry, "*") && r.step == 1)
		for v := r.from; v <= r.to; v += r.step {
			values[v] = true
			if f.name == weekday && v == 7 {
				values[0] = true
			}
		}
	}
	// A full list of days is not `*`: as a restriction, it is combined with the other field of days.
	if all || (f.name == dayHour && len(values) == 24) {
		return "*", nil
	}
	for v := f.least; v <= f.top; v++ {
		if values[v] {
			list = append(list, strconv.Itoa(v))
		}
	}
	return strings.Join(list, ","), nil
}

// parseSpecial parses the forms of days that are relative to the month: L, LW, 15W, FRIL and FRI#2. It returns them
// with numbers instead of names. ok is false if the entry is none of them.
func (f field) parseSpecial(entry string) (form string, ok bool) {
	day, end := entry, ""
	switch f.name {
	case monthday:
		if entry == "l" || entry == "lw" {
			return entry, true
		}
		if day, ok = strings.CutSuffix(entry, "w"); ok {
			end = "w"
		}
	case weekday:
		if day, ok = strings.CutSuffix(entry, "l"); ok {
			end = "l"
		} else if n := len(entry) - 2; n > 0 && entry[n] == '#' && entry[n+1] >= '1' && entry[n+1] <= '5' {
			day, end = entry[:n], entry[n:]
		}
	}
	if end == "" {
		return "", false
	}
	v, ok := f.parseValue(day)
	if f.name == weekday {
		v %= 7
	}
	return strconv.Itoa(v) + end, ok
}

// steppedRange is the values from, from+step, … up to to.
type steppedRange struct{ from, to, step int }

// parseRange parses *, a value or a range, each with or without a step.
func (f field) parseRange(entry string) (r steppedRange, err error) {
	span, steps, hasStep := strings.Cut(entry, "/")
	r.step = 1
	if hasStep {
		var ok bool
		if r.step, ok = parseNumber(steps); !ok || r.step < 1 || r.step > f.top {
			return r, fmt.Errorf("the step of %q must be from 1 to %d; for other intervals use the field every", entry,
				f.top)
		}
	}
	if span == "*" {
		r.from, r.to = f.least, f.top
		return r, nil
	}
	first, last, isRange := strings.Cut(span, "-")
	from, ok := f.parseValue(first)
	to := from
	switch {
	case isRange:
		var known bool
		to, known = f.parseValue(last)
		ok = ok && known
		if f.name == weekday && to == 0 && from > 0 {
			to = 7
		}
	case hasStep:
		to = max(f.top, from)
	}
	if !ok {
		return r, fmt.Errorf("%q is unknown: values are %s", entry, f.values)
	}
	if to < from {
		return r, fmt.Errorf("%q ends before it begins; use two ranges, separated by a comma", entry)
	}
	r.from, r.to = from, to
	return r, nil
}

// parseValue parses a number or a name. As a day of the week, 7 is Sunday.
func (f field) parseValue(text string) (v int, ok bool) {
	if i := slices.Index(f.names, text); i >= 0 {
		return f.least + i, true
	}
	v, ok = parseNumber(text)
	return v, ok && v >= f.least && (v <= f.top || (v == 7 && f.name == weekday))
}

// parseNumber parses one or two digits.
func parseNumber(text string) (n int, ok bool) {
	if len(text) > 2 {
		return 0, false
	}
	v, err := strconv.ParseUint(text, 10, 8)
	return int(v), err == nil
}
