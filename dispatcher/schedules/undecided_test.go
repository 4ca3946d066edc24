package schedules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// While ticks run late, nothing is known of the jobs that were delivered and removed. They must not hide those that die
// later.
func TestRecord_DropsTicksOfWhichNothingIsKnown(t *testing.T) {
	first := time.Unix(1_800_000_000, 0)
	for _, known := range []int{0, 1, maxUndecided} {
		s := step{
			progress: &progress{}, doc: &document{ScheduleSettings: store.ScheduleSettings{PauseAfterDead: 3}},
			unknown: map[int64]bool{},
		}
		const ticks = 5 * maxUndecided
		for i := range ticks {
			at := first.Add(time.Duration(i) * time.Second)
			s.unknown[at.Unix()] = i >= known
			s.record(store.ScheduleTick{At: at, JobID: "x", JobState: job.Scheduled, Outcome: store.TickRun})
		}
		require.Len(t, s.Undecided, maxUndecided)
		last := first.Unix() + ticks - store.MaxScheduleTicks - 1
		switch known {
		case maxUndecided:
			last = first.Unix() + maxUndecided - 1
		case 1:
			require.Equal(t, first.Unix(), s.Undecided[0])
		}
		require.Equal(t, last, s.Undecided[maxUndecided-1])
	}
}
