package work_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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

func list(t *testing.T, s store.Store, limit int, shown func(*store.Work) bool) (all []store.Work) {
	t.Helper()
	f := store.Filter{Namespace: job.DefaultNamespace, Limit: limit}
	for {
		found, page, err := work.List(t.Context(), router.New(s), f, shown)
		require.NoError(t, err)
		require.LessOrEqual(t, len(found), limit)
		all = append(all, found...)
		if f.After = page.Reached; !page.More {
			return all
		}
		require.Len(t, found, limit, "each page but the last is full")
	}
}

func TestCreate_RefusesMoreThanAHundredUnfinishedWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel(2)
		id := ""
		for range 100 {
			id = create(t, s, store.WorkOrder{Action: store.WorkRevive, Filter: allDead()})
		}
		_, err := work.Create(t.Context(), router.New(s), job.DefaultNamespace,
			store.WorkOrder{Action: store.WorkRevive, Filter: allDead()})
		var over *job.QuotaError
		require.ErrorAs(t, err, &over)
		require.Equal(t, "100", over.Limit)
		_, err = work.Create(t.Context(), router.New(s), "shop",
			store.WorkOrder{Action: store.WorkRevive, Filter: store.Filter{Namespace: "shop"}})
		require.NoError(t, err, "each namespace by itself")
		_, err = work.Stop(t.Context(), router.New(s), job.DefaultNamespace, id, "")
		require.NoError(t, err)
		create(t, s, store.WorkOrder{Action: store.WorkRevive, Filter: allDead()})
	})
}

func TestList_FillsPagesOfWhatIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel(2)
		for i := range 60 {
			f := allDead()
			f.Topic = fmt.Sprint("topic-", i%3)
			create(t, s, store.WorkOrder{Action: store.WorkRevive, Filter: f, IDs: make([]string, i)})
		}
		require.NoError(t, router.New(s).Insert(t.Context(), []store.NewJob{{New: job.New{Spec: job.Spec{
			ID: "rb:work:unreadable", Queue: job.Queue{
				Namespace: job.DefaultNamespace, Topic: job.WorkTopic,
				Lane: job.DefaultLane,
			}, Body: []byte("x"),
		}}}})[0].Err)
		require.Len(t, list(t, s, 7, func(*store.Work) bool { return true }), 61)
		some := list(t, s, 7, func(w *store.Work) bool { return w.Filter.Topic == "topic-1" })
		require.Len(t, some, 20)
		for _, w := range some {
			require.Empty(t, w.IDs)
			require.Equal(t, 1, w.IDCount%3)
		}
		failed := list(t, s, 7, func(w *store.Work) bool { return w.State == store.WorkFailed })
		require.Len(t, failed, 1)
		require.Equal(t, "unreadable", failed[0].ID)
	})
}

func TestWork_KeepsNoPlanAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		s := newModel(2)
		insertDead(t, s, n)
		start(t, s)
		var ids []string
		for i := range n {
			ids = append(ids, ref(i).ID)
		}
		id := create(t, s, store.WorkOrder{
			Action: store.WorkRevive, Filter: allDead(), IDs: ids, LaneRate: policy.Rate{Starts: 50, Per: time.Second},
			Header: map[string][]string{"X-A": {"1"}},
		})
		time.Sleep(time.Minute)
		require.Equal(t, store.WorkCounts{Matched: n, Done: n}, get(t, s, id).WorkCounts)
		found, err := router.New(s).Get(t.Context(), job.Ref{Namespace: job.DefaultNamespace, ID: "rb:work:" + id})
		require.NoError(t, err)
		require.Less(t, len(found.Body), 2000)
	})
}

func TestWork_EstimatesItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 600
		s := newModel(2)
		insertDead(t, s, n)
		began := time.Now()
		rate := policy.Rate{Starts: 10, Per: time.Second}
		byFilter := create(t, s, store.WorkOrder{Action: store.WorkRevive, Filter: allDead(), Rate: rate})
		require.EqualValues(t, -1, get(t, s, byFilter).Total)
		require.Zero(t, get(t, s, byFilter).ETA)
		start(t, s)
		time.Sleep(30 * time.Second)
		w := get(t, s, byFilter)
		require.EqualValues(t, n, w.Total)
		require.False(t, w.Listed)
		require.WithinDuration(t, began.Add(time.Minute), w.ETA, 20*time.Second)
		time.Sleep(time.Minute)
		w = get(t, s, byFilter)
		require.Equal(t, store.WorkDone, w.State)
		require.EqualValues(t, n, w.Total)
		require.Zero(t, w.ETA)
	})
}

// lastDue returns the latest due time of n jobs.
func lastDue(t *testing.T, s store.Store, n int) (last time.Time) {
	t.Helper()
	for i := range n {
		found, err := router.New(s).Get(t.Context(), ref(i))
		require.NoError(t, err)
		if found.DueAt.After(last) {
			last = found.DueAt
		}
	}
	return last
}

func TestWork_EstimatesTheLastStartUnderARate(t *testing.T) {
	lane := allDead()
	lane.Topic, lane.Lane = queue(0).Topic, queue(0).Lane
	var halfGone []string
	for i := range 600 {
		halfGone = append(halfGone, ref(i+300).ID)
	}
	slices.Reverse(halfGone) // those that are gone come first
	tenASecond, oneAMinute := policy.Rate{Starts: 10, Per: time.Second}, policy.Rate{Starts: 1, Per: time.Minute}
	for name, c := range map[string]struct {
		jobs  int
		order store.WorkOrder
		// unknown is how long the estimate may be unknown.
		unknown time.Duration
	}{
		"rate": {
			600, store.WorkOrder{Filter: allDead(), Rate: policy.Rate{Starts: 10, Per: time.Second}}, time.Second,
		},
		"with a delay": {600, store.WorkOrder{
			Filter: allDead(),
			Rate:   policy.Rate{Starts: 10, Per: time.Second}, Delay: time.Minute,
		}, time.Second},
		"skipped at once": {600, store.WorkOrder{
			Filter: allDead(), IDs: halfGone,
			Rate: policy.Rate{Starts: 10, Per: time.Second},
		}, time.Second},
		"lane rate": {
			600,
			store.WorkOrder{Filter: allDead(), LaneRate: policy.Rate{Starts: 1, Per: time.Second}},
			10 * time.Second,
		},
		"lane rate of one lane": {
			2400, store.WorkOrder{Filter: lane, LaneRate: policy.Rate{Starts: 10, Per: time.Second}}, time.Second,
		},
		"lane rate, many jobs": {2400, store.WorkOrder{Filter: allDead(), LaneRate: tenASecond}, time.Minute},
		"both rates": {600, store.WorkOrder{Filter: allDead(), Rate: policy.Rate{
			Starts: 100,
			Per:    time.Second,
		}, LaneRate: policy.Rate{Starts: 5, Per: time.Second}}, 15 * time.Second},
		"a start a minute": {20, store.WorkOrder{Filter: allDead(), Rate: oneAMinute}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newModel(2)
				insertDead(t, s, c.jobs)
				c.order.Action = store.WorkRevive
				id := create(t, s, c.order)
				start(t, s)
				began := time.Now()
				estimates := make(map[time.Duration]time.Time)
				for {
					time.Sleep(max(500*time.Millisecond, time.Since(began)/20))
					w := get(t, s, id)
					if w.State != store.WorkRunning {
						require.Positive(t, w.Done)
						break
					}
					estimates[time.Since(began)] = w.ETA
				}
				last := lastDue(t, s, c.jobs)
				require.NotEmpty(t, estimates)
				for after, estimate := range estimates {
					if after >= c.unknown || !estimate.IsZero() {
						require.WithinDuration(t, last, estimate, 2*time.Second, "after %s", after)
					}
				}
			})
		})
	}
}

// slowGet is a store on which each read of a job takes as long as a step may.
type slowGet struct{ store.Store }

func (s slowGet) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return slowGetShard{next} })
}

type slowGetShard struct{ store.Shard }

func (s slowGetShard) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	time.Sleep(3 * time.Second)
	return s.Shard.Get(ctx, ref)
}

// A step whose settlement was lost has to read all jobs of its plan. It does a part of them, and leaves the rest to the
// next.
func TestWork_RepeatsAStepInPartsWhenReadsAreSlow(t *testing.T) {
	all := orders()
	ids := all[store.WorkEdit]
	for i := range 120 {
		ids.IDs = append(ids.IDs, ref(i).ID)
	}
	all["edit by id"] = ids
	for _, order := range all {
		action := order.Action
		synctest.Test(t, func(t *testing.T) {
			const n = 120
			model := newModel(3)
			insertFor(t, model, action, n)
			start(t, storetest.Faulty(slowGet{model}, lostFor("Settle", 6, 2*store.TokenTTL, storetest.Before)))
			id := create(t, model, order)
			time.Sleep(8 * time.Minute)
			requireOnce(t, model, action, n)
			w := get(t, model, id)
			require.Equal(t, store.WorkDone, w.State)
			require.Equal(t, store.WorkCounts{Matched: n, Done: n}, w.WorkCounts)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		model := newModel(3)
		insertDead(t, model, n)
		start(t, storetest.Faulty(slowGet{model}, lostFor("Settle", 6, 2*store.TokenTTL, storetest.Before)))
		id := create(t, model, store.WorkOrder{Action: store.WorkRevive, Filter: allDead()})
		time.Sleep(10 * time.Minute)
		requireGeneration(t, model, n, 1)
		require.Equal(t, store.WorkCounts{Matched: n, Done: n}, get(t, model, id).WorkCounts)
	})
}

func TestPortableBody_LeavesNoPlaceOfAStore(t *testing.T) {
	body := `{"action":"edit","filter":{"Namespace":"default"},"after":{"e":true,"m":7,"s":3,"n":"x"},` +
		`"count_after":{"t":"a","l":"b","m":9,"n":"y"},"ids":["a"]}`
	var p struct {
		After      store.Position `json:"after"`
		CountAfter store.Position `json:"count_after"`
		IDs        []string       `json:"ids"`
	}
	require.NoError(t, json.Unmarshal(work.PortableBody([]byte(body)), &p))
	require.Equal(t, store.Position{Ended: true, At: 7}, p.After)
	require.Equal(t, store.Position{Topic: "a", Lane: "b", At: 9}, p.CountAfter)
	require.Equal(t, []string{"a"}, p.IDs)
	require.Equal(t, "{", string(work.PortableBody([]byte("{"))))
}
