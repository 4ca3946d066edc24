package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Describe returns when the schedule runs as an English sentence without a full stop, such as "At 08:00 on Monday to
// Friday, Europe/Berlin". It describes the cron text with its time zone or the interval, without jitter and bounds, and
// has at most 1,000 bytes.
func (s *Schedule) Describe() string {
	if s.cron == nil {
		return describeInterval(s.every, s.offset)
	}
	minutes, hours := s.cron.minutes.numbers.list(), s.cron.hours.numbers.list()
	text := describeTimes(minutes, hours)
	if days := s.cron.describeDays(len(hours) < 24); days != "" {
		text += " " + days
	} else if len(minutes) == 60 && len(hours) == 24 {
		return text // in any time zone
	}
	return text + ", " + s.cron.zone.String()
}

// maxTimes is the number of times that are listed where there is a shorter sentence.
const maxTimes = 4

// describeTimes describes the times of a day.
func describeTimes(minutes, hours []int) string {
	step := stepOf(minutes)
	cyclic := step > 0 && step*len(minutes) == 60 // it goes on in the next hour as if there were no hours
	ranges := rangesOf(hours)
	switch {
	case len(hours) == 24 && cyclic && minutes[0] == 0:
		return every(step)
	case len(hours) == 24 && cyclic && step < 60:
		return every(step) + ", from " + count(minutes[0], "minute") + " past the hour"
	case len(hours) == 24 && len(minutes) == 1:
		return "At " + count(minutes[0], "minute") + " past every hour"
	case len(hours) == 24:
		return "At " + listRanges(minutes, strconv.Itoa) + " minutes past every hour"
	case len(hours)*len(minutes) > maxTimes && cyclic && len(ranges) <= 3 &&
		(step < 60 || !slices.ContainsFunc(ranges, valueRange.isSingle)):
		spans := make([]string, len(ranges))
		for i, r := range ranges {
			spans[i] = "from " + clock(r.from, minutes[0]) + " to " + clock(r.to, minutes[len(minutes)-1])
		}
		return every(step) + " " + join(spans)
	case len(hours) > maxTimes && len(minutes) == 1 && stepOf(hours) > 0:
		return fmt.Sprintf("Every %d hours from %s to %s", stepOf(hours), clock(hours[0], minutes[0]),
			clock(hours[len(hours)-1], minutes[0]))
	case len(hours)*len(minutes) <= maxTimes || len(minutes) == 1:
		var times []string
		for _, h := range hours {
			for _, m := range minutes {
				times = append(times, clock(h, m))
			}
		}
		return "At " + join(times)
	case len(hours) == 1:
		return "At " + listRanges(minutes, strconv.Itoa) + " minutes past the hour " + strconv.Itoa(hours[0])
	default:
		return "At " + listRanges(minutes, strconv.Itoa) + " minutes past the hours " + listRanges(hours, strconv.Itoa)
	}
}

// stepOf returns the distance of numbers, 60 for a single one, and 0 if it differs.
func stepOf(list []int) int {
	if len(list) == 1 {
		return 60
	}
	step := list[1] - list[0]
	for i := range list[1:] {
		if list[i+1]-list[i] != step {
			return 0
		}
	}
	return step
}

// every describes an interval of minutes, up to an hour.
func every(minutes int) string {
	switch minutes {
	case 1:
		return "Every minute"
	case 60:
		return "Every hour"
	default:
		return fmt.Sprintf("Every %d minutes", minutes)
	}
}

func clock(hour, minute int) string { return fmt.Sprintf("%02d:%02d", hour, minute) }

// everyMonth is what follows days of each month.
const everyMonth = " of the month"

// describeDays describes the days of a cron text; empty: every day, unless daily.
func (c *cron) describeDays(daily bool) string {
	months := c.months.numbers.list()
	var dayRanges []string
	var in string
	switch ranges := rangesOf(months); {
	case len(months) == 12:
	case len(ranges) == 1 && len(months) > 2:
		in = "from " + month(ranges[0].from) + " to " + month(ranges[0].to)
	default:
		in = "in " + listRanges(months, month)
	}
	isEveryDay := c.monthdays.all && c.weekdays.all || !c.monthdays.all && c.monthdays.numbers.count() == 31 ||
		!c.weekdays.all && c.weekdays.numbers.count() == 7
	if isEveryDay {
		if daily {
			return strings.TrimSuffix("every day "+in, " ")
		}
		return in
	}
	if !c.monthdays.all {
		dayRanges = c.monthdays.describeMonthdays()
	}
	if !c.weekdays.all {
		dayRanges = append(dayRanges, c.weekdays.describeWeekdays()...)
	}
	all := strings.Join(dayRanges, " as well as ")
	of, isOfMonth := strings.CutSuffix(all, everyMonth)
	switch {
	case in == "":
		return all
	case len(dayRanges) > 1:
		return all + ", only " + in
	case isOfMonth && len(months) == 1:
		return of + " of " + month(months[0])
	default:
		return all + " " + in
	}
}

// describeMonthdays describes days of a month: numbers, L, LW and 15W.
func (v *values) describeMonthdays() (phrases []string) {
	var list []string
	the := func(day int) string { return "the " + ordinal(day) }
	if v.numbers != 0 {
		list = append(list, listRanges(v.numbers.list(), the))
	}
	if v.last {
		list = append(list, "the last day")
	}
	if v.lastWeekday {
		list = append(list, "the last weekday")
	}
	if len(list) > 0 {
		phrases = append(phrases, "on "+join(list)+everyMonth)
	}
	if v.nearest != 0 {
		phrases = append(phrases, "on the weekday nearest to "+listRanges(v.nearest.list(), the)+everyMonth)
	}
	return phrases
}

// describeWeekdays describes days of a week: numbers, 5L and 5#2.
func (v *values) describeWeekdays() (phrases []string) {
	days := v.numbers.list()
	for i, day := range days {
		days[i] = (day + 6) % 7 // Monday is first
	}
	if slices.Sort(days); len(days) > 0 {
		phrases = append(phrases, "on "+listRanges(days, weekdayName))
	}
	var list []string
	for day := range 7 {
		var which []string
		number := (day + 1) % 7
		for i, name := range []string{"first", "second", "third", "fourth", "fifth"} {
			if v.nth[i].has(number) {
				which = append(which, name)
			}
		}
		if v.lastOf.has(number) {
			which = append(which, "last")
		}
		if len(which) > 0 {
			list = append(list, "the "+join(which)+" "+weekdayName(day))
		}
	}
	if len(list) > 0 {
		phrases = append(phrases, "on "+join(list)+everyMonth)
	}
	return phrases
}

// weekdayName returns the name of a day of the week, from 0 for Monday.
func weekdayName(day int) string { return time.Weekday((day + 1) % 7).String() }

func month(v int) string { return time.Month(v).String() }

// ordinal returns a number from 1 to 31 as 1st, 2nd, 3rd ….
func ordinal(v int) string {
	end := "th"
	if v/10 != 1 {
		switch v % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return strconv.Itoa(v) + end
}

// valueRange is the numbers from one to another.
type valueRange struct{ from, to int }

func (r valueRange) isSingle() bool { return r.from == r.to }

// rangesOf returns the ranges of numbers that are in order.
func rangesOf(list []int) (ranges []valueRange) {
	for _, v := range list {
		if n := len(ranges); n > 0 && ranges[n-1].to == v-1 {
			ranges[n-1].to = v
		} else {
			ranges = append(ranges, valueRange{v, v})
		}
	}
	return ranges
}

// listRanges lists numbers by their names. Three or more that follow each other are a range.
func listRanges(list []int, name func(int) string) string {
	var texts []string
	for _, r := range rangesOf(list) {
		if r.to-r.from >= 2 {
			texts = append(texts, name(r.from)+" to "+name(r.to))
			continue
		}
		for v := r.from; v <= r.to; v++ {
			texts = append(texts, name(v))
		}
	}
	return join(texts)
}

// join joins the parts of a list.
func join(list []string) string {
	last := len(list) - 1
	if last < 1 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:last], ", ") + " and " + list[last]
}

// count returns a number of things.
func count(n int, unit string) string {
	if n != 1 {
		unit += "s"
	}
	return strconv.Itoa(n) + " " + unit
}

const oneDay = 24 * time.Hour

// describeInterval describes an interval, whose ticks are its multiples since 1970 plus an offset.
func describeInterval(interval, offset time.Duration) string {
	text := "Every " + strings.TrimPrefix(spanOf(interval), "1 ")
	if strings.Contains(text, ",") || strings.Contains(text, " and ") {
		text = "Every " + spanOf(interval)
	}
	switch {
	case interval%oneDay == 0:
		text += " at " + clockOf(offset%oneDay) + " UTC"
		if interval == 7*oneDay {
			text += " on " + time.Weekday((4+int(offset/oneDay))%7).String() // 1970-01-01 was a Thursday
		}
	case offset == 0 && time.Hour%interval == 0:
	case interval == 15*time.Minute:
		text += ", " + spanOf(offset) + " after each quarter hour"
	case time.Hour%interval == 0:
		text += ", from " + spanOf(offset) + " past the hour in UTC"
	case oneDay%interval == 0:
		text += ", each day from " + clockOf(offset) + " UTC"
	case offset > 0:
		text += ", counted from 1970-01-01 00:00 UTC plus " + spanOf(offset)
	default:
		text += ", counted from 1970-01-01 00:00 UTC"
	}
	return text
}

// clockOf returns a time of day.
func clockOf(d time.Duration) string {
	text := clock(int(d/time.Hour), int(d/time.Minute)%60)
	if s := int(d/time.Second) % 60; s > 0 {
		text += fmt.Sprintf(":%02d", s)
	}
	return text
}

// spanOf returns a duration of whole seconds in words.
func spanOf(d time.Duration) string {
	var list []string
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"day", oneDay}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		if n := int(d / unit.length); n > 0 {
			list = append(list, count(n, unit.name))
			d -= time.Duration(n) * unit.length
		}
	}
	return join(list)
}
