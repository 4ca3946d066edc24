package schedulepages

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/chart"
	"github.com/ringback/ringback/job/schedule"
)

func parsed(t testing.TB, spec schedule.Spec) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(spec)
	require.NoError(t, err)
	return s
}

var noon = time.Date(2026, 11, 24, 12, 34, 56, 0, time.UTC)

func TestTicksBetween_AreAllOfSparseSchedules(t *testing.T) {
	s := parsed(t, schedule.Spec{Cron: "0 8 * * *"})
	ticks, all := ticksBetween(s, noon, noon)
	require.True(t, all)
	require.Equal(t, []time.Time{time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)}, ticks)
	ticks, all = ticksBetween(parsed(t, schedule.Spec{Every: 6 * time.Minute}), noon.Truncate(time.Hour), noon)
	require.True(t, all)
	require.Len(t, ticks, 240)
}

// A sample looks like all ticks if it has both ends of each gap that is longer than stripStep.
func TestTicksBetween_LookLikeAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cron := fmt.Sprintf("*/%d,%d-59/%d 0-%d * * *", rapid.IntRange(1, 7).Draw(t, "minutes"),
			rapid.IntRange(1, 20).Draw(t, "first minute"),
			rapid.IntRange(1, 7).Draw(t, "other minutes"), rapid.IntRange(10, 23).Draw(t, "hour"))
		s, err := schedule.Parse(schedule.Spec{Cron: cron, Timezone: "Europe/Berlin"})
		require.NoError(t, err)
		from := noon.Add(time.Duration(rapid.IntRange(0, 300*24*60).Draw(t, "minutes later")) * time.Minute)
		now := from.Add(17 * time.Minute)
		ticks, all := ticksBetween(s, from, now)
		require.True(t, slices.IsSortedFunc(ticks, time.Time.Compare))
		every := s.Ticks(from.Add(-1), 2000)
		end := slices.IndexFunc(every, func(tick schedule.Tick) bool { return !tick.At.Before(from.Add(stripSpan)) })
		every = every[:end]
		if all {
			require.Len(t, ticks, len(every))
			return
		}
		require.LessOrEqual(t, len(ticks), 483)
		has := func(at time.Time) bool { return slices.ContainsFunc(ticks, at.Equal) }
		for i, tick := range every {
			if i == 0 || i == len(every)-1 || tick.At.Sub(every[i-1].At) > stripStep ||
				every[i+1].At.Sub(tick.At) > stripStep {
				require.True(t, has(tick.At), "%s: %s", cron, tick.At)
			}
		}
		for i := range ticks[1:] {
			if ticks[i+1].Sub(ticks[i]) > stripStep { // a true gap
				next, _ := s.Next(ticks[i])
				require.Equal(t, ticks[i+1], next)
			}
		}
		next, _ := s.Next(now)
		require.True(t, has(next) || !next.Before(from.Add(stripSpan)))
	})
}

func TestStrip_OfADenseScheduleIsABar(t *testing.T) {
	for _, spec := range []schedule.Spec{{Every: time.Second}, {Cron: "* * * * *"}} {
		drawn := string(strip(parsed(t, spec), noon, time.UTC, chart.NarrowDay))
		require.Contains(t, drawn, "at least")
		require.Contains(t, drawn, "the next at")
		require.Less(t, len(drawn), 1500, drawn)
		require.Contains(t, drawn, `class="c-bar" d="M8 6h304v16H8z"`)
	}
}

func BenchmarkStrips_Of50DenseSchedules(b *testing.B) {
	requests := []client.ScheduleRequest{
		{Cron: "* * * * *", Timezone: "Europe/Berlin"},
		{Every: time.Second},
		{Cron: "*/7 * * * *"},
		{Cron: "@daily"},
	}
	for b.Loop() {
		for i := range 50 {
			_ = strip(parse(&requests[i%len(requests)]), noon, time.UTC, chart.NarrowDay)
		}
	}
}
