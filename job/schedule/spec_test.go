package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
)

func TestParse_RefusesInvalidSpecs(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		spec schedule.Spec
		want string
	}{
		{schedule.Spec{}, "/cron: is required, or every"},
		{schedule.Spec{Cron: "@daily", Every: time.Hour}, "/every: cannot be combined with cron"},
		{schedule.Spec{Cron: "@daily", Offset: time.Hour}, "/offset: cannot be combined with cron"},
		{
			schedule.Spec{Every: time.Hour, Timezone: "Europe/Berlin"},
			"/timezone: cannot be combined with every, which counts elapsed time; use cron for local times",
		},
		{schedule.Spec{Every: -time.Hour}, "/every: must be whole seconds, from 1s to 366d"},
		{schedule.Spec{Every: 1500 * time.Millisecond}, "/every: must be whole seconds, from 1s to 366d"},
		{schedule.Spec{Every: 367 * 24 * time.Hour}, "/every: must be whole seconds, from 1s to 366d"},
		{schedule.Spec{Every: time.Minute, Offset: time.Minute}, "/offset: must be whole seconds, at least 0s and " +
			"less than every"},
		{schedule.Spec{Every: time.Minute, Offset: -1}, "/offset: must be whole seconds, at least 0s and less than " +
			"every"},
		{schedule.Spec{Every: time.Minute, Jitter: -1}, "/jitter: must be from 0s to 24h"},
		{schedule.Spec{Every: time.Minute, Jitter: 25 * time.Hour}, "/jitter: must be from 0s to 24h"},
		{schedule.Spec{Cron: "@daily", StartsAt: time.Unix(-1, 0)}, "/starts_at: must be in the years 1970 to 2099"},
		{schedule.Spec{Cron: "@daily", EndsAt: at.AddDate(100, 0, 0)}, "/ends_at: must be in the years 1970 to 2099"},
		{schedule.Spec{Cron: "@daily", StartsAt: at, EndsAt: at.Add(-1)}, "/ends_at: must not be before starts_at"},
		{
			schedule.Spec{Cron: "0 8 * * *", StartsAt: at, EndsAt: at.Add(time.Hour)},
			"/ends_at: is before the first tick: the schedule would never run",
		},
		{
			schedule.Spec{Cron: "0 0 1 1 *", StartsAt: time.Date(2099, time.June, 1, 0, 0, 0, 0, time.UTC)},
			"/starts_at: no tick follows before the year 2100: the schedule would never run",
		},

		{schedule.Spec{Cron: "@daily", Timezone: "Europe/Berln"}, `/timezone: "Europe/Berln" is not a known time ` +
			`zone; use an IANA name such as Europe/Berlin`},
		{schedule.Spec{Cron: "@daily", Timezone: "Europe"}, `/timezone: "Europe" is not a known time zone; use an ` +
			`IANA name such as Europe/Berlin`},
		{schedule.Spec{Cron: "@daily", Timezone: "Local"}, `/timezone: "Local" is not a time zone; use an IANA name ` +
			`such as Europe/Berlin, in its exact case`},
		{schedule.Spec{Cron: "@daily", Timezone: "europe/berlin"}, `/timezone: "europe/berlin" is not a time zone; ` +
			`use an IANA name such as Europe/Berlin, in its exact case`},
		{schedule.Spec{Cron: "@daily", Timezone: "../../etc/passwd"}, `/timezone: "../../etc/passwd" is not a time ` +
			`zone; use an IANA name such as Europe/Berlin, in its exact case`},
		{schedule.Spec{Cron: "@daily", Timezone: "right/Europe/Berlin"}, `/timezone: "right/Europe/Berlin" is not a ` +
			`time zone; use an IANA name such as Europe/Berlin, in its exact case`},
		{schedule.Spec{Cron: "@daily", Timezone: "+02:00"}, `/timezone: "+02:00" is not a time zone; use an IANA ` +
			`name such as Europe/Berlin, in its exact case`},
		{
			schedule.Spec{Cron: "@daily", Timezone: strings.Repeat("A", 1<<20)},
			`/timezone: "` + strings.Repeat("A", 40) +
				`" is not a time zone; use an IANA name such as Europe/Berlin, in its exact case`,
		},
		{
			schedule.Spec{Cron: "x", Timezone: "y", Jitter: -1},
			`/cron: has 1 fields, and must have 5: minute, hour, day of month, month, day of week; ` +
				`/timezone: "y" is not a time zone; use an IANA name such as Europe/Berlin, in its exact case; ` +
				`/jitter: must be from 0s to 24h`,
		},
	} {
		requireRefused(t, c.spec, c.want)
	}
}

func TestParse_RefusesInvalidCron(t *testing.T) {
	const (
		minutes   = "values are numbers from 0 to 59"
		monthdays = "values are numbers from 1 to 31, L, LW and days with W such as 15W"
		months    = "values are numbers from 1 to 12 and JAN to DEC"
		weekdays  = "values are numbers from 0 to 7, SUN to SAT, and days with L or # such as FRIL and FRI#2"
	)
	for cron, want := range map[string]string{
		" ": "has 0 fields, and must have 5: minute, hour, day of month, month, day of " +
			"week",
		"* * * *": "has 4 fields, and must have 5: minute, hour, day of month, month, day of " +
			"week",
		"0 * * * * *": "has 6 fields, and must have 5: minute, hour, day of month, month, day of " +
			"week",
		"@every 5m": "is not one of @yearly, @monthly, @weekly, @daily and @hourly; for " +
			"intervals use the field every",
		"@reboot": "is not one of @yearly, @monthly, @weekly, @daily and @hourly; for " +
			"intervals use the field every",
		"CRON_TZ=Asia/Tokyo 0 8 * * *": "must not contain a time zone: use the field timezone",
		"TZ=Asia/Tokyo 0 8 * * *":      "must not contain a time zone: use the field timezone",
		"60 * * * *":                   `minute: "60" is unknown: ` + minutes,
		"-1 * * * *":                   `minute: "-1" is unknown: ` + minutes,
		"0 24 * * *":                   `hour: "24" is unknown: values are numbers from 0 to 23`,
		"0 0 0 * *":                    `day of month: "0" is unknown: ` + monthdays,
		"0 0 32W * *":                  `day of month: "32w" is unknown: ` + monthdays,
		"0 0 L-3 * *":                  `day of month: "l-3" is unknown: ` + monthdays,
		"0 0 ? * *":                    `day of month: "?" is unknown: ` + monthdays,
		"0 0 * 13 *":                   `month: "13" is unknown: ` + months,
		"0 0 * january *":              `month: "january" is unknown: ` + months,
		"0 0 * * 8":                    `day of week: "8" is unknown: ` + weekdays,
		"0 0 * * L":                    `day of week: "l" is unknown: ` + weekdays,
		"0 0 * * FRI#6":                `day of week: "fri#6" is unknown: ` + weekdays,
		"0 0 * * FRI#":                 `day of week: "fri#" is unknown: ` + weekdays,
		"0 0 * * FRI-MON": `day of week: "fri-mon" ends before it begins; use two ranges, separated ` +
			`by a comma`,
		"0 22-2 * * *": `hour: "22-2" ends before it begins; use two ranges, separated by a comma`,
		"1,,2 * * * *": `minute: "" is unknown: ` + minutes,
		"*/0 * * * *": `minute: the step of "*/0" must be from 1 to 59; for other intervals use ` +
			`the field every`,
		"*/90 * * * *": `minute: the step of "*/90" must be from 1 to 59; for other intervals use ` +
			`the field every`,
		"*/ * * * *": `minute: the step of "*/" must be from 1 to 59; for other intervals use ` +
			`the field every`,
		"*-5 * * * *":                    `minute: "*-5" is unknown: ` + minutes,
		"5-* * * * *":                    `minute: "5-*" is unknown: ` + minutes,
		"0x1 * * * *":                    `minute: "0x1" is unknown: ` + minutes,
		"+1 * * * *":                     `minute: "+1" is unknown: ` + minutes,
		"001 * * * *":                    `minute: "001" is unknown: ` + minutes,
		"0 0 30 2 *":                     "never runs: none of its months has such a day",
		"0 0 31 4,6,9,11 *":              "never runs: none of its months has such a day",
		"0 0 30W FEB *":                  "never runs: none of its months has such a day",
		"0 " + strings.Repeat("1,", 200): "must be at most 256 B",
		strings.Repeat("*", 1<<20):       "must be at most 256 B",
	} {
		requireRefused(t, schedule.Spec{Cron: cron}, "/cron: "+want)
	}
}

func requireRefused(t *testing.T, spec schedule.Spec, want string) {
	t.Helper()
	_, err := schedule.Parse(spec)
	invalid, ok := errors.AsType[*job.InvalidError](err)
	require.True(t, ok, "%.60q: %v", spec.Cron, err)
	require.Equal(t, want, invalid.Error(), "%.60q", spec.Cron)
}

// FuzzParse looks for texts that panic, take long, or yield ticks that do not follow each other.
func FuzzParse(f *testing.F) {
	for _, cron := range []string{
		"30 2 * * *", "*/7 * * * *", "0 * 29 2 *", "0 0 L,15W,LW * 5L,FRI#5,7", "59 23 31 12 6", "@weekly",
		"0 0 30 2 *", "5-3 * * * *", "0 0 31 2 SUN#5", strings.Repeat("1,", 120) + "1 * * * *",
	} {
		f.Add(cron, "America/New_York", int64(1_772_000_000))
		f.Add(cron, "Australia/Lord_Howe", int64(4_000_000_000))
	}
	f.Fuzz(func(t *testing.T, cron, zone string, after int64) {
		s, err := schedule.Parse(schedule.Spec{Cron: cron, Timezone: zone})
		if err != nil {
			_, ok := errors.AsType[*job.InvalidError](err)
			require.True(t, ok)
			return
		}
		at := time.Unix(2_500_000_000+after%1_500_000_000, 0) // offsets had seconds until 1972
		for _, tick := range s.Ticks(at, 20) {
			require.True(t, tick.At.After(at))
			require.Equal(t, 0, tick.At.Second()+tick.At.Nanosecond())
			last, ok := s.Last(tick.At)
			require.True(t, ok)
			require.Equal(t, tick.At, last)
			at = tick.At
		}
	})
}
