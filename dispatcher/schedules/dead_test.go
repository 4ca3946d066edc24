package schedules_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

// died puts a schedule that a second dead job pauses, and changes. It returns when both have died, and no process runs.
func died(t *testing.T, s store.Store, changes ...func(*store.Schedule)) {
	t.Helper()
	stop := start(t, s, new(registrar))
	set := every(time.Minute)
	set.PauseAfterDead, set.CatchUp.Runs, set.StartsAt = 2, store.CatchUpNone, time.Now()
	put(t, s, set)
	time.Sleep(2*time.Minute + time.Second)
	for _, do := range changes {
		change(t, s, do)
	}
	stop()
	synctest.Wait()
	require.Equal(t, 2, finish(t, s, dead))
}

// Jobs that died before a pause that no process has seen do not count.
func TestPauseAfterDead_CountsFromAResumptionThatNoProcessHasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		died(t, s)
		change(t, s, pause)
		time.Sleep(time.Second)
		change(t, s, resume)
		start(t, s, new(registrar))
		time.Sleep(2 * time.Minute)
		require.False(t, get(t, s).Paused)
		require.Equal(t, store.ScheduleCounts{Run: 4}, get(t, s).Counts)
	})
}

// A tick from before a change that no process has seen runs although the schedule is paused.
func TestPauseAfterDead_LeavesTheTicksOfEndedPeriods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		died(t, s)
		time.Sleep(time.Minute)
		change(t, s, shiftTo(time.Second))
		time.Sleep(10 * time.Second)
		start(t, s, new(registrar))
		time.Sleep(time.Second)
		found := get(t, s)
		require.True(t, found.Paused)
		require.Equal(t, store.ScheduleCounts{Run: 3}, found.Counts)
	})
}

// The bound of changes is one for requests: a step would fail at it for ever.
func TestPauseAfterDead_PausesAfterAsManyChangesAsArePossible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		died(t, s)
		for range 100 {
			change(t, s, sameTicks)
		}
		start(t, s, new(registrar))
		time.Sleep(time.Second)
		require.True(t, get(t, s).Paused)
		change(t, s, resume)
		time.Sleep(2 * time.Minute)
		require.Equal(t, store.ScheduleCounts{Run: 4}, get(t, s).Counts)
	})
}

// A pause after a longer jitter begins when it is found, and not when a tick after it would be due. So the change after
// it holds from its own time on.
func TestPauseAfterDead_BeginsBeforeTheJitterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		died(t, s, delayTo(time.Hour))
		stop := start(t, s, new(registrar))
		change(t, s, func(stored *store.Schedule) { stored.Note = "wakes it" })
		time.Sleep(time.Second)
		require.True(t, get(t, s).Paused)
		stop()
		synctest.Wait()
		change(t, s, func(stored *store.Schedule) { stored.Paused, stored.Jitter = false, 0 })
		time.Sleep(8 * time.Minute)
		start(t, s, new(registrar))
		time.Sleep(time.Second)
		require.Equal(t, store.ScheduleCounts{Run: 3, Missed: 7}, get(t, s).Counts)
	})
}
