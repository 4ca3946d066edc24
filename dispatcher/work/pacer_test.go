package work

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

func TestPacer_ForgettingDoesNotExceedTheRate(t *testing.T) {
	for name, rate := range map[string]policy.Rate{"both": {Starts: 1000, Per: time.Second}, "lanes": {}} {
		t.Run(name, func(t *testing.T) {
			p := newPacer(rate, policy.Rate{Starts: 1, Per: time.Hour})
			var starts []time.Duration
			last := make(map[job.Queue]time.Duration)
			for i := range 2*maxRemembered + 100 {
				q := job.Queue{Lane: fmt.Sprint("lane-", i%(maxRemembered+10))}
				at := p.Next(q, 0)
				if before, ok := last[q]; ok {
					require.GreaterOrEqual(t, at-before, time.Hour)
				}
				last[q] = at
				starts = append(starts, at)
				require.LessOrEqual(t, len(p.lanes), maxRemembered)
				require.LessOrEqual(t, len(p.slots.taken), maxRemembered)
			}
			require.GreaterOrEqual(t, p.End(), slices.Max(starts))
			if rate.Limited() {
				slices.Sort(starts)
				require.Len(t, slices.Compact(starts), 2*maxRemembered+100, "each has a different slot")
			}
		})
	}
}

func TestPacer_BoundsItsFreeSlots(t *testing.T) {
	p := newPacer(policy.Rate{Starts: 3, Per: time.Second}, policy.Rate{})
	for i := range 10_000 {
		require.Equal(t, time.Duration(i*1000+2)/3*time.Millisecond, p.Next(job.Queue{}, 0))
	}
	require.Empty(t, p.slots.taken)
	require.Empty(t, p.lanes)

	p = newPacer(policy.Rate{Starts: 10, Per: time.Second}, policy.Rate{Starts: 1, Per: time.Second})
	for range 400 {
		p.Next(job.Queue{Lane: "a"}, 0)
	}
	require.Len(t, p.slots.taken, 399)
	for lane := range 9 {
		for i := range 400 {
			require.Equal(t, time.Duration(100*(lane+1)+1000*i)*time.Millisecond,
				p.Next(job.Queue{Lane: fmt.Sprint(lane)}, 0))
		}
	}
	require.Empty(t, p.slots.taken, "the lanes fill each other's gaps")
}
