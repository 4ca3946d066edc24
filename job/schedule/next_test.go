package schedule_test

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/job/schedule"
)

func parse(t testing.TB, spec schedule.Spec) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(spec)
	require.NoError(t, err)
	return s
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return at
}

// TestNext_ClockChanges compares ticks with the local times and offsets that clocks show.
func TestNext_ClockChanges(t *testing.T) {
	const newYork, lordHowe = "America/New_York", "Australia/Lord_Howe"
	for name, c := range map[string]struct {
		cron, zone, after string
		want              []string
	}{
		"a fixed time in the gap": {
			"30 2 * * *", newYork, "2026-03-07T12:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"},
		},
		"fixed times in the gap are one tick": {
			"*/20 2,3 * * *", newYork, "2026-03-08T00:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-08T03:20:00-04:00", "2026-03-08T03:40:00-04:00"},
		},
		"a gap of 30 minutes": {
			"15 2 * * *", lordHowe, "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"},
		},
		"a gap at midnight": {
			"0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00+02:00",
			[]string{"2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"},
		},
		"a gap that ends on the next day": {
			"30 23 * * *", "America/Scoresbysund", "2026-03-28T12:00:00-02:00",
			[]string{"2026-03-29T00:00:00-01:00", "2026-03-29T23:30:00-01:00"},
		},
		"a day that does not exist": {
			"0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"},
		},
		"a fixed time that exists twice": {
			"30 1 * * *", newYork, "2026-10-31T12:00:00-04:00",
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"},
		},
		"a fixed time that exists twice, asked for in the repeated hour": {
			"30 1 * * *", newYork, "2026-11-01T01:10:00-05:00",
			[]string{"2026-11-02T01:30:00-05:00"},
		},
		"a midnight that exists twice": {
			"0 0 * * *", "America/Havana", "2026-10-31T12:00:00-04:00",
			[]string{"2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"},
		},
		"hours that are listed are fixed times": {
			"0 0-2,3 * * *", newYork, "2026-10-31T23:30:00-04:00",
			[]string{
				"2026-11-01T00:00:00-04:00", "2026-11-01T01:00:00-04:00", "2026-11-01T02:00:00-05:00",
				"2026-11-01T03:00:00-05:00",
			},
		},
		"hourly in the repeated hour": {
			"0 * * * *", newYork, "2026-11-01T00:30:00-04:00",
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00"},
		},
		"half-hourly in the repeated hour": {
			"*/30 * * * *", newYork, "2026-11-01T01:00:00-04:00",
			[]string{
				"2026-11-01T01:30:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T01:30:00-05:00",
				"2026-11-01T02:00:00-05:00",
			},
		},
		"hourly over the gap": {
			"30 0-23 * * *", newYork, "2026-03-08T01:00:00-05:00",
			[]string{"2026-03-08T01:30:00-05:00", "2026-03-08T03:30:00-04:00"},
		},
		"hourly at the end of a leap year whose transitions are computed by a rule": {
			"0 0-23 31 12 *", newYork, "2040-12-31T22:00:00-05:00",
			[]string{"2040-12-31T23:00:00-05:00", "2041-12-31T00:00:00-05:00"},
		},
		"a day at the end of such a year": {
			"30 12 31 12 *", newYork, "2040-12-31T00:00:00-05:00",
			[]string{"2040-12-31T12:30:00-05:00", "2041-12-31T12:30:00-05:00"},
		},
		"half-hourly in a repeated half hour": {
			"*/30 * * * *", lordHowe, "2026-04-05T01:00:00+11:00",
			[]string{"2026-04-05T01:30:00+11:00", "2026-04-05T01:30:00+10:30", "2026-04-05T02:00:00+10:30"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, schedule.Spec{Cron: c.cron, Timezone: c.zone})
			at := instant(t, c.after)
			for _, want := range c.want {
				next, ok := s.Next(at)
				require.True(t, ok)
				require.Equal(t, instant(t, want).UTC(), next)
				at = next
			}
		})
	}
}

// TestNext_Fields compares the first ticks from 2026-01-01T00:00Z on, a Thursday.
func TestNext_Fields(t *testing.T) {
	for cron, want := range map[string][]string{
		"0 8 * * MON-FRI": {"2026-01-01T08:00:00Z", "2026-01-02T08:00:00Z", "2026-01-05T08:00:00Z"},
		"0 8 * * fri-sun": {
			"2026-01-02T08:00:00Z", "2026-01-03T08:00:00Z", "2026-01-04T08:00:00Z", "2026-01-09T08:00:00Z",
		},
		"0 8 * * 6-7":   {"2026-01-03T08:00:00Z", "2026-01-04T08:00:00Z", "2026-01-10T08:00:00Z"},
		"0 8 * * 1-7/3": {"2026-01-01T08:00:00Z", "2026-01-04T08:00:00Z", "2026-01-05T08:00:00Z"},
		"0 8 * * 7":     {"2026-01-04T08:00:00Z", "2026-01-11T08:00:00Z"},
		"0 8 * * 05":    {"2026-01-02T08:00:00Z", "2026-01-09T08:00:00Z"},
		"0 8 * * */2":   {"2026-01-01T08:00:00Z", "2026-01-03T08:00:00Z", "2026-01-04T08:00:00Z"},
		"0 0 13 * 5": {
			"2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z", "2026-01-16T00:00:00Z",
		},
		"0 0 L * *":     {"2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z"},
		"0 0 LW * *":    {"2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z"},
		"0 0 15W * *":   {"2026-01-15T00:00:00Z", "2026-02-16T00:00:00Z"},
		"0 0 1,L * *":   {"2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z"},
		"0 0 * * FRI#2": {"2026-01-09T00:00:00Z", "2026-02-13T00:00:00Z"},
		"0 0 * * 5L":    {"2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z"},
		"0 0 * * 7L":    {"2026-01-25T00:00:00Z", "2026-02-22T00:00:00Z"},
		"0 0 * * 7#1":   {"2026-01-04T00:00:00Z", "2026-02-01T00:00:00Z"},
		"0 0 1W 8 *":    {"2026-08-03T00:00:00Z", "2027-08-02T00:00:00Z", "2028-08-01T00:00:00Z"},
		"0 0 31W * *":   {"2026-01-30T00:00:00Z", "2026-03-31T00:00:00Z", "2026-05-29T00:00:00Z"},
		"0 0 * * SUN#5": {"2026-03-29T00:00:00Z", "2026-05-31T00:00:00Z"},
		"0 0 13 * FRIL": {"2026-01-13T00:00:00Z", "2026-01-30T00:00:00Z", "2026-02-13T00:00:00Z"},
		"0 0 29 2 *":    {"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"},
		"0 0 31 * *":    {"2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z"},
		"*/7 0 1 JAN *": {"2026-01-01T00:00:00Z", "2026-01-01T00:07:00Z"},
		"5/20 12-13 * * *": {
			"2026-01-01T12:05:00Z", "2026-01-01T12:25:00Z", "2026-01-01T12:45:00Z", "2026-01-01T13:05:00Z",
		},
		" 10,5-6  3 * 2\t*": {"2026-02-01T03:05:00Z", "2026-02-01T03:06:00Z", "2026-02-01T03:10:00Z"},
		"@hourly":           {"2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"},
		"@Daily":            {"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		"@weekly":           {"2026-01-04T00:00:00Z", "2026-01-11T00:00:00Z"},
		"@monthly":          {"2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"},
		"@yearly":           {"2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
	} {
		t.Run(cron, func(t *testing.T) {
			s := parse(t, schedule.Spec{Cron: cron})
			at := instant(t, "2025-12-31T23:59:59.999Z")
			for _, text := range want {
				next, ok := s.Next(at)
				require.True(t, ok)
				require.Equal(t, instant(t, text).UTC(), next)
				at = next
			}
		})
	}
}

// TestNext_FieldsMatchTheirSets compares random fields with the sets of values that they were made from.
func TestNext_FieldsMatchTheirSets(t *testing.T) {
	days := []string{"SUN", "mon", "Tue", "WED", "THU", "FRI", "SAT"}
	entry := func(t *rapid.T, least, top int, set map[int]bool, name func(int) string) string {
		a := rapid.IntRange(least, top).Draw(t, "a")
		b := rapid.IntRange(a, top).Draw(t, "b")
		step := rapid.IntRange(1, top).Draw(t, "step")
		text := map[int]string{
			0: name(a), 1: name(a) + "-" + name(b), 2: name(a) + "-" + name(b) + "/" + strconv.Itoa(step),
			3: "*/" + strconv.Itoa(step), 4: name(a) + "/" + strconv.Itoa(step),
		}
		form := rapid.IntRange(0, 4).Draw(t, "form")
		from, to := a, b
		switch form {
		case 0:
			to, step = a, 1
		case 1:
			step = 1
		case 3:
			from, to = least, top
		case 4:
			to = top
		}
		for v := from; v <= to; v += step {
			set[v] = true
		}
		return text[form]
	}
	rapid.Check(t, func(t *rapid.T) {
		minutes, hours, weekdays := map[int]bool{}, map[int]bool{}, map[int]bool{}
		text := entry(t, 0, 59, minutes, strconv.Itoa) + "," + entry(t, 0, 59, minutes, strconv.Itoa)
		text += " " + entry(t, 0, 23, hours, strconv.Itoa) + " * * "
		text += entry(t, 0, 6, weekdays, func(v int) string { return days[v] })
		s, err := schedule.Parse(schedule.Spec{Cron: text})
		require.NoError(t, err, text)

		start := time.Date(2026, 5, 1, 0, rapid.IntRange(0, 10*24*60).Draw(t, "start"), 0, 0, time.UTC)
		end := start.Add(48 * time.Hour)
		var want, got []time.Time
		for at := start.Add(time.Minute); !at.After(end); at = at.Add(time.Minute) {
			if minutes[at.Minute()] && hours[at.Hour()] && weekdays[int(at.Weekday())] {
				want = append(want, at)
			}
		}
		for at, ok := s.Next(start); ok && !at.After(end); at, ok = s.Next(at) {
			got = append(got, at)
		}
		require.Equal(t, want, got, text)
	})
}

func TestNext_CronTextsBeginWithTheLocalYear1970(t *testing.T) {
	s := parse(t, schedule.Spec{Cron: "0 20 * * *", Timezone: "America/New_York"})
	at, ok := s.Next(time.Time{})
	require.True(t, ok)
	require.Equal(t, instant(t, "1970-01-01T20:00:00-05:00").UTC(), at)
}

func TestNext_Intervals(t *testing.T) {
	s := parse(t, schedule.Spec{Every: 15 * time.Minute, Offset: 2 * time.Minute})
	var got []string
	at := instant(t, "2026-01-01T00:02:00Z")
	for range 3 {
		at, _ = s.Next(at)
		got = append(got, at.Format(time.RFC3339))
	}
	require.Equal(t, []string{"2026-01-01T00:17:00Z", "2026-01-01T00:32:00Z", "2026-01-01T00:47:00Z"}, got)

	at, ok := s.Next(instant(t, "2026-01-01T00:16:59.999Z"))
	require.True(t, ok)
	require.Equal(t, instant(t, "2026-01-01T00:17:00Z").UTC(), at)

	at, ok = s.Next(time.Time{})
	require.True(t, ok)
	require.Equal(t, instant(t, "1970-01-01T00:02:00Z").UTC(), at, "the first of all")
}

func TestNext_Bounds(t *testing.T) {
	noon := schedule.Spec{Cron: "0 12 * * *", Timezone: "Europe/Berlin"}
	noon.StartsAt, noon.EndsAt = instant(t, "2026-07-02T12:00:00+02:00"), instant(t, "2026-07-04T12:00:00+02:00")
	halfDays := schedule.Spec{Every: 12 * time.Hour, Offset: 10 * time.Hour, StartsAt: noon.StartsAt, EndsAt: instant(t,
		"2026-07-03T22:00:00Z")}
	for name, c := range map[string]struct {
		spec        schedule.Spec
		first, last string
		n           int
	}{
		"cron": {noon, "2026-07-02T10:00:00Z", "2026-07-04T10:00:00Z", 3},
		"interval": {
			halfDays,
			"2026-07-02T10:00:00Z", "2026-07-03T22:00:00Z", 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, c.spec)
			ticks := s.Ticks(time.Time{}, 10)
			require.Len(t, ticks, c.n)
			require.Equal(t, instant(t, c.first).UTC(), ticks[0].At)
			require.Equal(t, instant(t, c.last).UTC(), ticks[c.n-1].At)

			_, ok := s.Next(ticks[c.n-1].At)
			require.False(t, ok)
			_, ok = s.Next(time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC))
			require.False(t, ok)
			last, ok := s.Last(time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC))
			require.True(t, ok)
			require.Equal(t, ticks[c.n-1].At, last)
			_, ok = s.Last(ticks[0].At.Add(-1))
			require.False(t, ok)
			_, ok = s.Last(time.Time{})
			require.False(t, ok)
		})
	}
}

// TestLast_IsTheTickBefore compares Last with Next at, before and after each tick.
func TestLast_IsTheTickBefore(t *testing.T) {
	for name, spec := range map[string]schedule.Spec{
		"interval":  {Every: 17 * time.Minute},
		"every day": {Cron: "30 2 * * *", Timezone: "America/New_York"},
		"hourly":    {Cron: "*/20 * * * *", Timezone: "America/New_York"},
		"dense day": {Cron: "*/5 * 29 2 *", Timezone: "Australia/Lord_Howe"},
		"rare":      {Cron: "0 0 * 2 SUN#5", Timezone: "Pacific/Kiritimati"},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, spec)
			before, ok := s.Next(instant(t, "2026-03-07T00:00:00Z"))
			require.True(t, ok)
			for range 100 {
				tick, ok := s.Next(before)
				if !ok {
					break
				}
				for at, want := range map[time.Time]time.Time{
					tick.Add(-1): before, tick: tick, tick.Add(1): tick, before.Add(tick.Sub(before) / 2): before,
				} {
					last, ok := s.Last(at)
					require.True(t, ok)
					require.Equal(t, want, last, "until %s", at)
				}
				before = tick
			}
		})
	}
}

func TestTicks_SayWhatClockChangesDo(t *testing.T) {
	for name, c := range map[string]struct {
		cron, zone, after string
		want              []string // local time and note of each tick
	}{
		"a gap": {
			"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z",
			[]string{
				"2026-03-28T02:30:00+01:00 ",
				"2026-03-29T03:00:00+02:00 02:30 does not exist on 2026-03-29, because clocks go forward: runs at " +
					"03:00",
				"2026-03-30T02:30:00+02:00 ",
			},
		},
		"a gap into the next day": {
			"30 23 * * *", "America/Scoresbysund", "2026-03-28T12:00:00-02:00",
			[]string{"2026-03-29T00:00:00-01:00 23:30 does not exist on 2026-03-28, because clocks go forward: runs " +
				"at 00:00 on 2026-03-29"},
		},
		"a fold": {
			"30 2 * * *", "Europe/Berlin", "2026-10-25T00:00:00Z",
			[]string{
				"2026-10-25T02:30:00+02:00 02:30 exists twice on 2026-10-25, because clocks go back: runs once, the " +
					"first time",
				"2026-10-26T02:30:00+01:00 ",
			},
		},
		"hourly over a gap": {
			"30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{
				"2026-03-29T01:30:00+01:00 ",
				"2026-03-29T03:30:00+02:00 02:30 does not exist on 2026-03-29, because clocks go forward: continues " +
					"at 03:30",
				"2026-03-29T04:30:00+02:00 ",
			},
		},
		"hourly over a fold": {
			"0 * * * *", "Europe/Berlin", "2026-10-24T23:00:00Z",
			[]string{
				"2026-10-25T02:00:00+02:00 02:00 exists twice on 2026-10-25, because clocks go back: this is the " +
					"first time",
				"2026-10-25T02:00:00+01:00 02:00 exists twice on 2026-10-25, because clocks go back: this is the " +
					"second time",
				"2026-10-25T03:00:00+01:00 ",
			},
		},
		"the end of a leap year whose transitions are computed by a rule": {
			"0 20 * * *", "America/New_York", "2040-12-31T00:00:00Z",
			[]string{"2040-12-30T20:00:00-05:00 ", "2040-12-31T20:00:00-05:00 ", "2041-01-01T20:00:00-05:00 "},
		},
		"a zone without changes": {"30 2 * * *", "", "2026-03-29T00:00:00Z", []string{"2026-03-29T02:30:00Z "}},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, schedule.Spec{Cron: c.cron, Timezone: c.zone})
			var got []string
			for _, tick := range s.Ticks(instant(t, c.after), len(c.want)) {
				require.True(t, tick.At.Equal(tick.Local))
				require.Equal(t, time.UTC, tick.At.Location())
				got = append(got, tick.Local.Format(time.RFC3339)+" "+tick.Note)
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestTicks_OfAnInterval(t *testing.T) {
	s := parse(t, schedule.Spec{Every: time.Hour})
	at := instant(t, "2026-01-01T01:00:00Z").UTC()
	require.Equal(t, []schedule.Tick{{At: at, Local: at}}, s.Ticks(at.Add(-1), 1))
}

func TestCount_CountsIntervalsAtOnceAndCronTextsUpToABound(t *testing.T) {
	year := 365 * 24 * time.Hour
	start := instant(t, "2026-01-01T00:00:00Z").UTC()
	second := parse(t, schedule.Spec{Every: time.Second})
	n, last := second.Count(start, start.Add(year), 10)
	require.Equal(t, int64(year/time.Second), n)
	require.Equal(t, start.Add(year), last)

	bounded := parse(t,
		schedule.Spec{Every: time.Hour, Offset: time.Minute, StartsAt: start, EndsAt: start.Add(3 * time.Hour)})
	n, last = bounded.Count(start.Add(-year), start.Add(year), 10)
	require.Equal(t, int64(3), n)
	require.Equal(t, start.Add(2*time.Hour+time.Minute), last)
	for _, until := range []time.Time{start.Add(-year), start, start.Add(59 * time.Second)} {
		n, _ = bounded.Count(start.Add(-year), until, 10)
		require.Zero(t, n)
	}
	n, _ = bounded.Count(start.Add(3*time.Hour), start.Add(year), 10)
	require.Zero(t, n)

	daily := parse(t, schedule.Spec{Cron: "@daily"})
	n, last = daily.Count(start, start.Add(72*time.Hour), 10)
	require.Equal(t, int64(3), n)
	require.Equal(t, start.Add(72*time.Hour), last)
	n, last = daily.Count(start, start.Add(year), 10)
	require.Equal(t, int64(10), n)
	require.Equal(t, start.Add(240*time.Hour), last)
}

func TestJitter_IsStableAndSpread(t *testing.T) {
	s := parse(t, schedule.Spec{Cron: "@daily", Jitter: 5 * time.Minute})
	require.Equal(t, 103403*time.Millisecond, s.Jitter("nightly-report"), "must never change: jobs would move")
	var all []time.Duration
	for n := range 1000 {
		all = append(all, s.Jitter("schedule-"+strconv.Itoa(n)))
	}
	slices.Sort(all)
	require.GreaterOrEqual(t, all[0], time.Duration(0))
	require.LessOrEqual(t, all[999], 5*time.Minute)
	require.InDelta(t, (150 * time.Second).Seconds(), all[500].Seconds(), 20, "the median")
	require.InDelta(t, (75 * time.Second).Seconds(), all[250].Seconds(), 20, "the first quarter")

	require.Zero(t, parse(t, schedule.Spec{Cron: "@daily"}).Jitter("nightly-report"))
}

// TestNext_ConcurrentCalls fails under the race detector if calls share what they change.
func TestNext_ConcurrentCalls(t *testing.T) {
	s := parse(t, schedule.Spec{Cron: "0 8 * * MON", Timezone: "Europe/Berlin"})
	early, late := instant(t, "2026-01-01T00:00:00Z"), instant(t, "2030-01-01T00:00:00Z")
	var wg sync.WaitGroup
	wg.Go(func() { s.Ticks(early, 20) })
	s.Ticks(late, 20)
	wg.Wait()
}
