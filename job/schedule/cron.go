package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cron is a cron text in a time zone.
type cron struct {
	minutes, hours, monthdays, months, weekdays values

	zone *time.Location
}

// set is a set of numbers from 0 to 63.
type set uint64

func (s *set) add(v int)     { *s |= 1 << v }
func (s set) has(v int) bool { return s>>v&1 != 0 }
func (s set) count() int     { return bits.OnesCount64(uint64(s)) }

// list returns the numbers in order.
func (s set) list() (list []int) {
	for v := range 64 {
		if s.has(v) {
			list = append(list, v)
		}
	}
	return list
}

// values are what a field matches.
type values struct {
	numbers set
	all     bool // `*`, or all hours

	last, lastWeekday bool   // L and LW: the last day of the month, and its last Monday to Friday
	nearest           set    // 15W: the Monday to Friday nearest to each of these days
	lastOf            set    // FRIL: the last of each of these days of the week
	nth               [5]set // FRI#2: the days of the week that are the first, second … of the month
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
	c := &cron{}
	for i, into := range [...]*values{&c.minutes, &c.hours, &c.monthdays, &c.months, &c.weekdays} {
		var err error
		if *into, err = fields[i].parse(parts[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", fields[i].name, err)
		}
	}
	if c.match(earliest.Add(-1)).IsZero() {
		return nil, errors.New("never runs: none of its months has such a day")
	}
	return c, nil
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

// parse returns what a field matches.
func (f field) parse(text string) (v values, err error) {
	for entry := range strings.SplitSeq(text, ",") {
		if f.parseSpecial(entry, &v) {
			continue
		}
		r, err := f.parseRange(entry)
		if err != nil {
			return v, err
		}
		v.all = v.all || (strings.HasPrefix(entry, "*") && r.step == 1)
		for n := r.from; n <= r.to; n += r.step {
			v.numbers.add(f.number(n))
		}
	}
	// A full list of days is not `*`: as a restriction, it is combined with the other field of days.
	if v.all || (f.name == dayHour && v.numbers.count() == 24) {
		v = values{numbers: v.numbers, all: true}
	}
	return v, nil
}

// number returns a value as a number of a set: as a day of the week, 7 is Sunday, as 0 is.
func (f field) number(v int) int {
	if f.name == weekday {
		return v % 7
	}
	return v
}

// parseSpecial parses the forms of days that are relative to the month: L, LW, 15W, FRIL and FRI#2. It reports whether
// the entry is one of them.
func (f field) parseSpecial(entry string, v *values) bool {
	n := max(0, len(entry)-2)
	var day string
	var into *set
	switch {
	case f.name == monthday && entry == "l":
		v.last = true
		return true
	case f.name == monthday && entry == "lw":
		v.lastWeekday = true
		return true
	case f.name == monthday && strings.HasSuffix(entry, "w"):
		day, into = strings.TrimSuffix(entry, "w"), &v.nearest
	case f.name == weekday && strings.HasSuffix(entry, "l"):
		day, into = strings.TrimSuffix(entry, "l"), &v.lastOf
	case f.name == weekday && n > 0 && entry[n] == '#' && entry[n+1] >= '1' && entry[n+1] <= '5':
		day, into = entry[:n], &v.nth[entry[n+1]-'1']
	default:
		return false
	}
	number, ok := f.parseValue(day)
	if ok {
		into.add(f.number(number))
	}
	return ok
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

// match returns the first local time after another that the fields match. The zero time: none.
func (c *cron) match(after time.Time) time.Time {
	t := after.Truncate(time.Minute).Add(time.Minute)
	if t.Before(earliest) {
		t = earliest
	}
	for t.Year() <= latest.Year() {
		year, month, day := t.Date()
		rest := set(0)
		if c.months.numbers.has(int(month)) {
			rest = c.days(year, month) >> day
		}
		switch {
		case rest == 0:
			t = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
		case !rest.has(0):
			t = time.Date(year, month, day+bits.TrailingZeros64(uint64(rest)), 0, 0, 0, 0, time.UTC)
		case !c.hours.numbers.has(t.Hour()):
			t = t.Truncate(time.Hour).Add(time.Hour)
		default:
			if left := c.minutes.numbers >> t.Minute(); left != 0 {
				return t.Add(time.Duration(bits.TrailingZeros64(uint64(left))) * time.Minute)
			}
			t = t.Truncate(time.Hour).Add(time.Hour)
		}
	}
	return time.Time{}
}

// days returns the days of a month that match. If both fields of days are restricted, either is enough.
func (c *cron) days(year int, month time.Month) (found set) {
	m, w := &c.monthdays, &c.weekdays
	first := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	for day := 1; day <= last; day++ {
		on := int(first.Weekday()+time.Weekday(day-1)) % 7
		if m.all && w.all ||
			!m.all && (m.numbers.has(day) || m.last && day == last) ||
			!w.all && (w.numbers.has(on) || w.nth[(day-1)/7].has(on) || w.lastOf.has(on) && day+7 > last) {
			found.add(day)
		}
		if m.nearest.has(day) || m.lastWeekday && day == last {
			found.add(nearestWeekday(first.AddDate(0, 0, day-1)))
		}
	}
	return found
}

// nearestWeekday returns the Monday to Friday that is nearest to a day within its month.
func nearestWeekday(day time.Time) int {
	for _, away := range []int{0, -1, 1, -2} {
		at := day.AddDate(0, 0, away)
		if on := at.Weekday(); on != time.Saturday && on != time.Sunday && at.Month() == day.Month() {
			return at.Day()
		}
	}
	return day.Day() + 2 // the 1st is a Saturday
}
