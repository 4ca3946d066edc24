package schedule_test

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job/schedule"
)

// pattern is a cron text and what it means, written without the package: the minutes of a local day, and its days.
type pattern struct {
	cron   string
	hourly bool
	minute func(minute int) bool
	day    func(date time.Time) bool
}

func everyDay(time.Time) bool { return true }

var patterns = []pattern{
	{"30 2 * * *", false, func(m int) bool { return m == 150 }, everyDay},
	{"0 0 * * *", false, func(m int) bool { return m == 0 }, everyDay},
	{"0 * * * *", true, func(m int) bool { return m%60 == 0 }, everyDay},
	{"*/30 * * * *", true, func(m int) bool { return m%30 == 0 }, everyDay},
	{"*/7 * * * *", true, func(m int) bool { return m%60%7 == 0 }, everyDay},
	{"*/20 0-3 * * *", false, func(m int) bool { return m < 240 && m%20 == 0 }, everyDay},
	{
		"15 1 L * *", false, func(m int) bool { return m == 75 },
		func(d time.Time) bool { return d.AddDate(0, 0, 1).Day() == 1 },
	},
	{"45 23 * * MON-FRI", false, func(m int) bool { return m == 1425 }, func(d time.Time) bool {
		return d.Weekday() != time.Saturday && d.Weekday() != time.Sunday
	}},
}

// sampleZones are zones whose clocks change in different ways: by 30, 60 and 120 minutes, at midnight, on the day
// before, for Ramadan, in the south, and not at all.
var sampleZones = []string{
	"UTC", "Asia/Kathmandu", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe",
	"Antarctica/Troll", "Africa/Cairo",
	"America/Havana", "Asia/Beirut", "America/Scoresbysund", "Africa/Casablanca", "America/Santiago", "Pacific/Chatham",
}

// TestNext_AllZones compares Next with clocks that are read every minute: over two years in every zone of the IANA
// database, and around every change of clocks since 2010, with SCHEDULE_ZONES=all; otherwise around the changes of one
// year in some zones.
//
// A fixed time runs when clocks show it, or a later time, for the first time: each day once, never backwards. With * as
// the hour, every time that clocks show runs.
func TestNext_AllZones(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if os.Getenv("SCHEDULE_ZONES") != "all" {
		for _, name := range sampleZones {
			compareChanges(t, name, start, start.AddDate(1, 0, 0))
		}
		return
	}
	for _, name := range ianaZones(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, name, start, start.AddDate(2, 0, 0))
			compareChanges(t, name, start.AddDate(-16, 0, 0), start.AddDate(11, 0, 0))
		})
	}
}

// compareChanges compares the days around each change of a zone's clocks, and the first days.
func compareChanges(t *testing.T, name string, start, end time.Time) {
	t.Helper()
	const around = 26 * time.Hour
	zone, err := time.LoadLocation(name)
	require.NoError(t, err)
	for at := start; !at.IsZero() && at.Before(end); _, at = at.In(zone).ZoneBounds() {
		compare(t, name, at.UTC().Add(-around), at.UTC().Add(around))
	}
}

// compare compares the ticks of all patterns in a span.
func compare(t *testing.T, name string, start, end time.Time) {
	t.Helper()
	want := readClocks(t, name, start, end)
	for i, p := range patterns {
		s := parse(t, schedule.Spec{Cron: p.cron, Timezone: name})
		at := start
		for n := 0; ; n++ {
			tick, ok := s.Next(at)
			require.True(t, ok)
			if tick.After(end) {
				require.Len(t, want[i], n, "%s in %s: ticks from %s to %s", p.cron, name, start, end)
				break
			}
			if n == len(want[i]) || tick.Unix() != want[i][n] {
				require.Less(t, n, len(want[i]), "%s in %s: an additional tick at %s", p.cron, name, tick)
				require.Equal(t, time.Unix(want[i][n], 0).UTC(), tick, "%s in %s after %s", p.cron, name, at)
			}
			at = tick
		}
	}
}

// readClocks returns the seconds since 1970 of the ticks of each pattern after start, up to end.
func readClocks(t *testing.T, name string, start, end time.Time) [][]int64 {
	t.Helper()
	zone, err := time.LoadLocation(name)
	require.NoError(t, err)
	local := func(at time.Time) int64 {
		_, offset := at.In(zone).Zone()
		if offset%60 != 0 {
			t.Fatalf("%s differs from UTC by seconds at %s", name, at)
		}
		return (at.Unix() + int64(offset)) / 60
	}
	days := make(map[int64][]bool) // by day: which patterns run on it
	runs := func(pattern int, minute int64) bool {
		if !patterns[pattern].minute(int(minute % 1440)) {
			return false
		}
		on, ok := days[minute/1440]
		if !ok {
			date := time.Unix(minute/1440*86400, 0).UTC()
			for _, p := range patterns {
				on = append(on, p.day(date))
			}
			days[minute/1440] = on
		}
		return on[pattern]
	}

	ticks := make([][]int64, len(patterns))
	shown := int64(0) // the latest minute that clocks have shown
	for at := start.Add(-48 * time.Hour); !at.After(start); at = at.Add(time.Minute) {
		shown = max(shown, local(at))
	}
	for at := start.Add(time.Minute); !at.After(end); at = at.Add(time.Minute) {
		now := local(at)
		for i, p := range patterns {
			due := p.hourly && runs(i, now)
			for minute := shown + 1; minute <= now && !p.hourly && !due; minute++ {
				due = runs(i, minute)
			}
			if due {
				ticks[i] = append(ticks[i], at.Unix())
			}
		}
		shown = max(shown, now)
	}
	return ticks
}

// ianaZones returns the names of the database that comes with Go.
func ianaZones(t *testing.T) []string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	require.NoError(t, err)
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	require.NoError(t, err)
	defer archive.Close()
	var names []string
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	require.Greater(t, len(names), 500)
	return names
}
