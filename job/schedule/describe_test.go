package schedule_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/job/schedule"
)

func TestDescribe_Sentences(t *testing.T) {
	for cron, want := range map[string]string{
		"* * * * *":    "Every minute",
		"*/15 * * * *": "Every 15 minutes, UTC",
		"2/15 * * * *": "Every 15 minutes, from 2 minutes past the hour, UTC",
		"@hourly":      "Every hour, UTC",
		"30 * * * *":   "At 30 minutes past every hour, UTC",
		"*/7 * * * MON-FRI": "At 0, 7, 14, 21, 28, 35, 42, 49 and 56 minutes past every hour on Monday to " +
			"Friday, UTC",
		"@daily":            "At 00:00 every day, UTC",
		"0 8,9 * * MON-FRI": "At 08:00 and 09:00 on Monday to Friday, UTC",
		"*/15 9-17 * * *":   "Every 15 minutes from 09:00 to 17:45 every day, UTC",
		"* 9 * * *":         "Every minute from 09:00 to 09:59 every day, UTC",
		"30 8-17 * * 0,6":   "Every hour from 08:30 to 17:30 on Saturday and Sunday, UTC",
		"0 */2 * * *":       "Every 2 hours from 00:00 to 22:00 every day, UTC",
		"5 1,2,3,5,8 * * *": "At 01:05, 02:05, 03:05, 05:05 and 08:05 every day, UTC",
		"1-3,7 1,2 * * *":   "At 1 to 3 and 7 minutes past the hours 1 and 2 every day, UTC",
		"0 0 1 * *":         "At 00:00 on the 1st of the month, UTC",
		"@yearly":           "At 00:00 on the 1st of January, UTC",
		"0 18 L 2 *":        "At 18:00 on the last day of February, UTC",
		"0 9 LW * *":        "At 09:00 on the last weekday of the month, UTC",
		"0 9 15W * *":       "At 09:00 on the weekday nearest to the 15th of the month, UTC",
		"0 10 * * TUE#2":    "At 10:00 on the second Tuesday of the month, UTC",
		"0 22 * 1-6 FRIL":   "At 22:00 on the last Friday of the month from January to June, UTC",
		"0 0 13 * FRI":      "At 00:00 on the 13th of the month as well as on Friday, UTC",
		"0 0 13,1W 10,11 FRI": "At 00:00 on the 13th of the month as well as on the weekday nearest to the 1st of " +
			"the month as well as on Friday, only in October and November, UTC",
		"0 0 1-31 * FRI": "At 00:00 every day, UTC",
		"* * * DEC *":    "Every minute in December, UTC",
		"0 0 */2 * 1#1,1#3,2L,0": "At 00:00 on the 1st, the 3rd, the 5th, the 7th, the 9th, the 11th, the 13th, the " +
			"15th, the 17th, the 19th, the 21st, the 23rd, the 25th, the 27th, the 29th and the 31st of the month as " +
			"well as on Sunday as well as on the first and third Monday and the last Tuesday of the month, UTC",
	} {
		require.Equal(t, want, parse(t, schedule.Spec{Cron: cron}).Describe(), cron)
	}
	require.Equal(t, "At 08:00 every day, Europe/Berlin",
		parse(t, schedule.Spec{Cron: "0 8 * * *", Timezone: "Europe/Berlin"}).Describe())
	for _, c := range []struct {
		every, offset time.Duration
		want          string
	}{
		{time.Second, 0, "Every second"},
		{15 * time.Minute, 0, "Every 15 minutes"},
		{15 * time.Minute, 2 * time.Minute, "Every 15 minutes, 2 minutes after each quarter hour"},
		{time.Hour, 90 * time.Second, "Every hour, from 1 minute and 30 seconds past the hour in UTC"},
		{90 * time.Minute, 0, "Every 1 hour and 30 minutes, each day from 00:00 UTC"},
		{8 * time.Hour, 2*time.Hour + time.Second, "Every 8 hours, each day from 02:00:01 UTC"},
		{24 * time.Hour, 2 * time.Hour, "Every day at 02:00 UTC"},
		{7 * 24 * time.Hour, 3 * 24 * time.Hour, "Every 7 days at 00:00 UTC on Sunday"},
		{7 * time.Minute, 0, "Every 7 minutes, counted from 1970-01-01 00:00 UTC"},
		{25 * time.Hour, time.Hour, "Every 1 day and 1 hour, counted from 1970-01-01 00:00 UTC plus 1 hour"},
	} {
		s := parse(t, schedule.Spec{Every: c.every, Offset: c.offset})
		require.Equal(t, c.want, s.Describe())
		if _, after, ok := strings.Cut(c.want, " on "); ok {
			next, _ := s.Next(time.Unix(1893456000, 0))
			require.Equal(t, after, next.Weekday().String())
		}
	}
}

// reading is what a reader understands of a sentence about a cron text.
type reading struct {
	t        require.TestingT
	times    map[int]bool // minutes of the day
	everyDay bool
	days     []func(time.Time) bool // one of them
	months   map[time.Month]bool
}

func (r *reading) matches(at time.Time) bool {
	return r.times[at.Hour()*60+at.Minute()] && r.months[at.Month()] &&
		(r.everyDay || slices.ContainsFunc(r.days, func(day func(time.Time) bool) bool { return day(at) }))
}

// listed returns the numbers of a list with ranges.
func (r *reading) listed(text string, number func(string) int) (all []int) {
	for entry := range strings.SplitSeq(strings.ReplaceAll(text, " and ", ", "), ", ") {
		from, to, isRange := strings.Cut(entry, " to ")
		if !isRange {
			to = from
		}
		for v := number(from); v <= number(to); v++ {
			all = append(all, v)
		}
	}
	return all
}

func (r *reading) number(text string) int {
	n, err := strconv.Atoi(
		strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(text, "the "),
			"st"), "nd"), "rd"), "th"),
	)
	require.NoError(r.t, err)
	return n
}

func (r *reading) minute(text string) int {
	at, err := time.Parse("15:04", text)
	require.NoError(r.t, err, text)
	return at.Hour()*60 + at.Minute()
}

func (r *reading) month(text string) int {
	at, err := time.Parse("January", text)
	require.NoError(r.t, err, text)
	return int(at.Month())
}

var weekdayNames = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

// lastDay returns the last day of a month.
func lastDay(at time.Time) int {
	return time.Date(at.Year(), at.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// isNearest reports whether a day is the Monday to Friday of its month that is nearest to another day of it.
func isNearest(at time.Time, day int) bool {
	if day > lastDay(at) {
		return false
	}
	for _, distance := range []int{0, -1, 1, -2, 2} {
		d := time.Date(at.Year(), at.Month(), day+distance, 0, 0, 0, 0, time.UTC)
		if d.Month() == at.Month() && d.Weekday() != time.Saturday && d.Weekday() != time.Sunday {
			return d.Day() == at.Day()
		}
	}
	return false
}

// day reads a phrase of days, without "on ".
func (r *reading) day(phrase string) func(time.Time) bool {
	text, ofMonth := strings.CutSuffix(phrase, " of the month")
	if rest, ok := strings.CutPrefix(text, "the weekday nearest to "); ok {
		days := r.listed(rest, r.number)
		return func(at time.Time) bool {
			return slices.ContainsFunc(days, func(day int) bool { return isNearest(at, day) })
		}
	}
	if !ofMonth {
		days := r.listed(text, func(name string) int {
			require.Contains(r.t, weekdayNames, name)
			return slices.Index(weekdayNames, name)
		})
		return func(at time.Time) bool { return slices.Contains(days, int(at.Weekday()+6)%7) }
	}
	var matches []func(time.Time) bool
	var ordinals []string
	for entry := range strings.SplitSeq(strings.ReplaceAll(text, " and ", ", "), ", ") {
		entry = strings.TrimPrefix(entry, "the ")
		which, name, _ := strings.Cut(entry, " ")
		if entry == "last day" {
			matches = append(matches, func(at time.Time) bool { return at.Day() == lastDay(at) })
			continue
		}
		if entry == "last weekday" {
			matches = append(matches, func(at time.Time) bool { return isNearest(at, lastDay(at)) })
			continue
		}
		if i := slices.Index([]string{"first", "second", "third", "fourth", "fifth", "last"}, which); i >= 0 {
			ordinals = append(ordinals, which)
			if name == "" {
				continue
			}
			require.Contains(r.t, weekdayNames, name)
			for _, o := range ordinals {
				matches = append(matches, func(at time.Time) bool {
					if at.Weekday().String() != name {
						return false
					}
					n := (at.Day() - 1) / 7
					return o == "last" && at.Day()+7 > lastDay(at) ||
						n == slices.Index([]string{"first", "second", "third", "fourth", "fifth"}, o)
				})
			}
			ordinals = nil
			continue
		}
		days := r.listed(entry, r.number)
		matches = append(matches, func(at time.Time) bool { return slices.Contains(days, at.Day()) })
	}
	require.Empty(r.t, ordinals)
	return func(at time.Time) bool {
		return slices.ContainsFunc(matches, func(f func(time.Time) bool) bool { return f(at) })
	}
}

// expressions of the sentences.
var (
	monthsPattern = regexp.MustCompile(`(?:,? only)?(?: in ((?:[A-Z][a-z]+(?:, | and | to )?)+)| from ([A-Z][a-z]+ ` +
		`to [A-Z][a-z]+))$`)
	oneMonth     = regexp.MustCompile(` of ([A-Z][a-z]+)$`)
	spans        = regexp.MustCompile(`from (\d\d:\d\d) to (\d\d:\d\d)`)
	everyMinutes = regexp.MustCompile(`^Every (?:(\d+) )?(minute|hour)s?`)
	pastHour     = regexp.MustCompile(`^At (.*) minutes? past (every hour|the hours? (.*))$`)
)

// readSentence reads a sentence in the time zone UTC.
func readSentence(t require.TestingT, text string) *reading {
	r := &reading{t: t, times: make(map[int]bool), months: make(map[time.Month]bool)}
	text = strings.TrimSuffix(text, ", UTC")
	months := "January to December"
	if m := oneMonth.FindStringSubmatch(text); m != nil {
		months, text = m[1], strings.TrimSuffix(text, m[0])+" of the month"
	} else if m := monthsPattern.FindStringSubmatch(text); m != nil {
		months, text = m[1]+m[2], strings.TrimSuffix(text, m[0])
	}
	for _, m := range r.listed(months, r.month) {
		r.months[time.Month(m)] = true
	}
	times, days, hasDays := strings.Cut(text, " on ")
	if hasDays {
		for phrase := range strings.SplitSeq(days, " as well as on ") {
			r.days = append(r.days, r.day(phrase))
		}
	} else {
		times, r.everyDay = strings.TrimSuffix(times, " every day"), true
	}
	if m := everyMinutes.FindStringSubmatch(times); m != nil {
		step := 1
		if m[1] != "" {
			step = r.number(m[1])
		}
		if m[2] == "hour" {
			step *= 60
		}
		rest := strings.TrimPrefix(times, m[0])
		ranges := spans.FindAllStringSubmatch(rest, -1)
		if from := regexp.MustCompile(`^, from (\d+) minutes? past the hour$`).FindStringSubmatch(rest); from != nil {
			for v := r.number(from[1]); v < 24*60; v += step {
				r.times[v] = true
			}
		} else if rest == "" {
			require.Zero(t, 60%step)
			ranges = [][]string{{"", "00:00", "23:59"}}
		} else {
			require.NotEmpty(t, ranges, text)
		}
		for _, span := range ranges {
			for v := r.minute(span[1]); v <= r.minute(span[2]); v += step {
				r.times[v] = true
			}
		}
	} else if m := pastHour.FindStringSubmatch(times); m != nil {
		hours := m[3]
		if hours == "" {
			hours = "0 to 23"
		}
		for _, h := range r.listed(hours, r.number) {
			for _, v := range r.listed(m[1], r.number) {
				r.times[h*60+v] = true
			}
		}
	} else {
		for _, v := range r.listed(strings.TrimPrefix(times, "At "), r.minute) {
			r.times[v] = true
		}
	}
	return r
}

// drawField draws a field of a cron text.
func drawField(t *rapid.T, name string, least, top int, special ...string) string {
	value := rapid.IntRange(least, top)
	var entries []string
	for range rapid.IntRange(1, 4).Draw(t, name+" entries") {
		switch kind := rapid.IntRange(0, 4+len(special)).Draw(t, name); kind {
		case 0:
			entries = append(entries, "*")
		case 1, 2:
			entries = append(entries, strconv.Itoa(value.Draw(t, "value")))
		case 3:
			from := value.Draw(t, "from")
			entries = append(entries, fmt.Sprintf("%d-%d", from, rapid.IntRange(from, top).Draw(t, "to")))
		case 4:
			entries = append(entries, fmt.Sprintf("%s/%d", rapid.SampledFrom([]string{"*", strconv.Itoa(value.Draw(t,
				"from"))}).Draw(t, "of"), rapid.IntRange(1, top).Draw(t, "step")))
		default:
			entries = append(entries, strings.ReplaceAll(special[kind-5], "n", strconv.Itoa(value.Draw(t, "n"))))
		}
	}
	return strings.Join(entries, ",")
}

func TestDescribe_SaysWhenTicksAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := []string{
			drawField(t, "minute", 0, 59), drawField(t, "hour", 0, 23), "*", "*", "*",
		}
		if rapid.Bool().Draw(t, "days") {
			parts[2] = drawField(t, "day", 1, 31, "L", "LW", "nW", "nW")
		}
		if rapid.Bool().Draw(t, "months") {
			parts[3] = drawField(t, "month", 1, 12)
		}
		if rapid.Bool().Draw(t, "weekdays") {
			parts[4] = drawField(t, "weekday", 0, 7, "nL", "n#1", "n#3", "n#5")
		}
		cron := strings.Join(parts, " ")
		s, err := schedule.Parse(schedule.Spec{Cron: cron})
		if err != nil {
			t.Skip(err) // it never runs
		}
		text := s.Describe()
		require.LessOrEqual(t, len(text), 1000)
		r := readSentence(t, text)
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(0, 2000).Draw(t, "first day"))
		// All minutes of a day of a tick, and the first tick of each of 400 days.
		tick, _ := s.Next(start)
		at := tick.Truncate(24 * time.Hour)
		next, _ := s.Next(at.Add(-time.Second))
		for range 24 * 60 {
			require.Equal(t, next.Equal(at), r.matches(at), "%s: %s at %s", cron, text, at)
			if next.Equal(at) {
				next, _ = s.Next(at)
			}
			at = at.Add(time.Minute)
		}
		for day := start; day.Before(start.AddDate(0, 0, 400)); day = day.AddDate(0, 0, 1) {
			tick, _ := s.Next(day.Add(-time.Second))
			expected := tick.Before(day.AddDate(0, 0, 1))
			runs := r.months[day.Month()] && (r.everyDay || slices.ContainsFunc(r.days,
				func(f func(time.Time) bool) bool { return f(day) }))
			require.Equal(t, expected, runs, "%s: %s on %s", cron, text, day)
		}
	})
}
