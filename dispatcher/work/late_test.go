package work_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/work"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/storetest"
)

func TestWork_StopsUnderALaneRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		s := newModel(1)
		insertDead(t, s, n)
		start(t, s)
		id := create(t, s, store.WorkOrder{
			Action: store.WorkRevive, Filter: allDead(),
			LaneRate: policy.Rate{Starts: 1, Per: time.Minute},
		})
		time.Sleep(5*time.Minute + 30*time.Second)
		_, err := work.Stop(t.Context(), router.New(s), job.DefaultNamespace, id, "")
		require.NoError(t, err)
		time.Sleep(time.Hour)
		w := get(t, s, id)
		require.Equal(t, store.WorkStopped, w.State)
		require.GreaterOrEqual(t, w.Done, int64(5*lanes))
		require.LessOrEqual(t, w.Done, int64(6*lanes), "the starts of later minutes are not made")
	})
}

func TestWork_KeepsItsRateWhenStepsAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		rate := policy.Rate{Starts: 1, Per: time.Second}
		s := newModel(1)
		insertDead(t, s, n)
		startLate(t, s, 25*time.Second)
		id := create(t, s, store.WorkOrder{Action: store.WorkRevive, Filter: allDead(), Rate: rate})
		time.Sleep(20 * time.Minute)
		require.Equal(t, store.WorkCounts{Matched: n, Done: n}, get(t, s, id).WorkCounts)
		var starts []time.Time
		for i := range n {
			found, err := router.New(s).Get(t.Context(), ref(i))
			require.NoError(t, err)
			starts = append(starts, found.DueAt)
		}
		requireRate(t, starts, rate)
	})
}

func TestWork_LeavesNamedJobsThatAreLaterThanIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel(1)
		insertWaiting(t, s, 1)
		order := store.WorkOrder{Action: store.WorkPurge, Filter: allDead(), IDs: []string{ref(0).ID}}
		purge := create(t, s, order)
		order = orders()[store.WorkCancel]
		order.IDs = []string{"later"}
		cancel := create(t, s, order)
		time.Sleep(2 * time.Hour)
		require.Equal(t, 1, kill(t, s))
		later := store.NewJob{New: job.New{Spec: job.Spec{ID: "later", Queue: queue(0)}, Delay: time.Hour}}
		require.NoError(t, router.New(s).Insert(t.Context(), []store.NewJob{later})[0].Err)
		start(t, s)
		time.Sleep(time.Minute)
		require.Equal(t, store.WorkCounts{Matched: 1, Skipped: 1, Failures: []store.WorkFailure{
			{ID: ref(0).ID, Reason: "ended after the work began"},
		}}, get(t, s, purge).WorkCounts)
		require.Equal(t, store.WorkCounts{Matched: 1, Skipped: 1, Failures: []store.WorkFailure{
			{ID: "later", Reason: "not found"},
		}}, get(t, s, cancel).WorkCounts)
	})
}

func TestWork_CountsNoInternalJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 60
		s := newModel(1)
		insertWaiting(t, s, n)
		require.NoError(t, router.New(s).Insert(t.Context(), []store.NewJob{{New: job.New{
			Spec: job.Spec{
				ID:    "rb:work:later",
				Queue: job.Queue{Namespace: job.DefaultNamespace, Topic: job.WorkTopic, Lane: job.DefaultLane},
			},
			Delay: 24 * time.Hour,
		}}})[0].Err)
		start(t, s)
		order := orders()[store.WorkRun]
		order.Rate = policy.Rate{Starts: 1, Per: time.Second}
		id := create(t, s, order)
		time.Sleep(15 * time.Second)
		w := get(t, s, id)
		require.False(t, w.Listed)
		require.EqualValues(t, n, w.Total)
	})
}

// A job that is revived, and is dead again by a clock that was set back, has ended before the work began.
func TestWork_RevivesEachJobOnceWhenTheClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		s := storetest.NewModel(storetest.ModelOptions{Shards: 1})
		insertDead(t, s, n)
		time.Sleep(time.Hour)
		startLate(t, s, 10*time.Second)
		id := create(t, s, store.WorkOrder{Action: store.WorkRevive, Filter: allDead()})
		time.Sleep(15 * time.Second)
		s.Step(-2 * time.Minute)
		require.Positive(t, kill(t, s))
		time.Sleep(time.Hour)
		require.EqualValues(t, n, get(t, s, id).Done)
		for i := range n {
			found, err := router.New(s).Get(t.Context(), ref(i))
			require.NoError(t, err)
			require.Equal(t, 1, found.Generation, ref(i).ID)
		}
	})
}
