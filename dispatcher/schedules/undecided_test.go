package schedules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// While ticks run late, nothing is known of the jobs that were delivered and removed. They must not hide those that die later.
func TestRecord_KeepsTheNewestUndecidedTicks(t *testing.T) {
	s := step{progress: &progress{}, doc: &document{ScheduleSettings: store.ScheduleSettings{PauseAfterDead: 3}}}
	first := time.Unix(1_800_000_000, 0)
	const ticks = 5 * maxUndecided
	for i := range ticks {
		s.record(store.ScheduleTick{At: first.Add(time.Duration(i) * time.Second), JobID: "x", JobState: job.Scheduled, Outcome: store.TickRun})
	}
	require.Len(t, s.Undecided, maxUndecided)
	require.Equal(t, first.Unix()+ticks-store.MaxScheduleTicks-1, s.Undecided[maxUndecided-1])
}
