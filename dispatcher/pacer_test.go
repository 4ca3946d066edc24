package dispatcher

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestPacer_ForgettingDoesNotExceedTheRate(t *testing.T) {
	for name, how := range map[string]store.RevivePlan{
		"both":  {Rate: policy.Rate{Starts: 1000, Per: time.Second}, LaneRate: policy.Rate{Starts: 1, Per: time.Hour}},
		"lanes": {LaneRate: policy.Rate{Starts: 1, Per: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPacer(how)
			var starts []int64
			last := make(map[job.Queue]int64)
			for i := range 2*maxRemembered + 100 {
				q := job.Queue{Lane: fmt.Sprint("lane-", i%(maxRemembered+10))}
				at := p.nextDelay(q, 0)
				if before, ok := last[q]; ok {
					require.GreaterOrEqual(t, at-before, time.Hour.Milliseconds())
				}
				last[q] = at
				starts = append(starts, at)
				require.LessOrEqual(t, len(p.lanes), maxRemembered)
				require.LessOrEqual(t, len(p.slots.taken), maxRemembered)
			}
			require.GreaterOrEqual(t, p.end(), slices.Max(starts))
			if how.Rate.Limited() {
				slices.Sort(starts)
				require.Len(t, slices.Compact(starts), 2*maxRemembered+100, "each has a different slot")
			}
		})
	}
}

func TestPacer_BoundsItsFreeSlots(t *testing.T) {
	p := newPacer(store.RevivePlan{Rate: policy.Rate{Starts: 3, Per: time.Second}})
	for i := range int64(10_000) {
		require.Equal(t, (i*1000+2)/3, p.nextDelay(job.Queue{}, 0))
	}
	require.Empty(t, p.slots.taken)
	require.Empty(t, p.lanes)

	p = newPacer(store.RevivePlan{Rate: policy.Rate{Starts: 10, Per: time.Second}, LaneRate: policy.Rate{Starts: 1, Per: time.Second}})
	for range 1000 {
		p.nextDelay(job.Queue{Lane: "a"}, 0)
	}
	require.Len(t, p.slots.taken, 999)
	for lane := range 9 {
		for i := range int64(1000) {
			require.Equal(t, 100*int64(lane+1)+1000*i, p.nextDelay(job.Queue{Lane: fmt.Sprint(lane)}, 0))
		}
	}
	require.Empty(t, p.slots.taken, "the lanes fill each other's gaps")
}
