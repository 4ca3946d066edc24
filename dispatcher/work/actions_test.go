package work_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/storetest"
)

// insertWaiting inserts n jobs that are due in an hour.
func insertWaiting(t *testing.T, s store.Store, n int) {
	t.Helper()
	var jobs []store.NewJob
	for i := range n {
		jobs = append(jobs, store.NewJob{New: job.New{
			Spec:  job.Spec{ID: ref(i).ID, Queue: queue(i), URL: "https://a.example/"},
			Delay: time.Hour + time.Duration(i)*time.Second,
		}})
	}
	for _, result := range router.New(s).Insert(t.Context(), jobs) {
		require.NoError(t, result.Err)
	}
	time.Sleep(time.Second)
}

// retry claims all due jobs of the queues, and lets their attempts fail.
func retry(t *testing.T, s store.Store) { retryAfter(t, s, 2*time.Hour) }

func retryAfter(t *testing.T, s store.Store, wait time.Duration) {
	t.Helper()
	r := router.New(s)
	for i := range lanes {
		q := queue(i)
		shard := r.Shards()[r.ShardOf(q)]
		claimed, err := shard.Claim(t.Context(), store.NewToken(), store.ClaimRequest{
			Queues: []store.QueueClaim{{Queue: q, Max: store.MaxBatch, Timeout: time.Minute}},
			Max:    store.MaxBatch, MaxBytes: 1 << 20,
		})
		require.NoError(t, err)
		for _, j := range claimed.Jobs {
			_, _, err := shard.Settle(t.Context(), store.NewToken(), []store.Settlement{{
				Ref: j.Ref(), Queue: q, Lease: j.Lease, Verdict: policy.Verdict{Kind: policy.Again, Wait: wait},
			}}, nil)
			require.NoError(t, err)
		}
	}
}

// orders has an order of each action that changes jobs but revive, for all jobs that it can select.
func orders() map[store.WorkAction]store.WorkOrder {
	all := make(map[store.WorkAction]store.WorkOrder)
	for _, action := range store.WorkActions()[1:] {
		if action == store.WorkReplay {
			continue
		}
		_, states := action.States()
		all[action] = store.WorkOrder{
			Action: action,
			Filter: store.Filter{Namespace: job.DefaultNamespace, States: states},
		}
	}
	edit := all[store.WorkEdit]
	edit.Edit = &job.Edit{
		Fields: []string{"labels"}, Spec: job.Spec{Labels: map[string]string{"a": "b"}},
		Due: &job.TimeOrDelay{In: 3 * time.Hour},
	}
	all[store.WorkEdit] = edit
	return all
}

// requireOnce requires that bulk work has changed each of n jobs once, and as the action says.
func requireOnce(t *testing.T, s store.Store, action store.WorkAction, n int) {
	t.Helper()
	for i := range n {
		found, err := router.New(s).Get(t.Context(), ref(i))
		if action == store.WorkPurge {
			require.ErrorIs(t, err, store.ErrNotFound)
			continue
		}
		require.NoError(t, err)
		changes := 0
		for _, e := range found.Events {
			if strings.HasPrefix(e.Actor, "work:") {
				changes++
			}
		}
		require.Equal(t, 1, changes, "%s: %+v", found.ID, found.Events)
		switch action {
		case store.WorkCancel:
			require.Equal(t, job.Cancelled, found.State)
		case store.WorkRun:
			require.True(t, found.FirstDueAt.Before(time.Now()))
		default:
			require.Equal(t, "b", found.Labels["a"])
		}
	}
}

func insertFor(t *testing.T, s store.Store, action store.WorkAction, n int) {
	t.Helper()
	if action == store.WorkPurge {
		insertDead(t, s, n)
	} else {
		insertWaiting(t, s, n)
	}
}

// The edit moves jobs behind the place in the list that the work has reached, so that they are selected again.
func TestWork_ChangesEachJobOnceWhateverCallFails(t *testing.T) {
	const n = 100
	for action, order := range orders() {
		for _, method := range []string{"", "Settle", "List", "Get", map[store.WorkAction]string{
			store.WorkPurge: "Purge", store.WorkCancel: "Cancel", store.WorkRun: "Replace", store.WorkEdit: "Replace",
		}[action]} {
			for _, fault := range []storetest.Fault{storetest.Before, storetest.LostReply} {
				for _, nth := range testkit.Of([]int{4}, []int{1, 4}) {
					t.Run(fmt.Sprint(action, method, fault, nth), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							model := newModel(3)
							insertFor(t, model, action, n)
							s := storetest.Faulty(model, storetest.Nth(method, nth, fault))
							start(t, s)
							id := create(t, s, order)
							time.Sleep(10 * time.Millisecond)
							later := store.NewJob{New: job.New{
								Spec:  job.Spec{ID: "later", Queue: queue(0)},
								Delay: time.Hour,
							}}
							require.NoError(t, router.New(model).Insert(t.Context(), []store.NewJob{later})[0].Err)
							for range 30 {
								time.Sleep(time.Second)
								retry(t, model)
							}
							requireOnce(t, model, action, n)
							w := get(t, s, id)
							require.Equal(t, store.WorkDone, w.State)
							require.Equal(t, store.WorkCounts{Matched: n, Done: n}, w.WorkCounts)
							found, err := router.New(model).Get(t.Context(),
								job.Ref{Namespace: job.DefaultNamespace, ID: "later"})
							require.NoError(t, err)
							require.Equal(t, job.Scheduled, found.State)
							require.Empty(t, found.Events)
						})
					})
				}
			}
		}
	}
}

// As for revivals: a step is repeated after the store has forgotten the tokens of its calls.
func TestWork_ChangesEachJobOnceWhenAStepIsRepeatedLater(t *testing.T) {
	const n = 100
	for action, order := range orders() {
		for _, at := range testkit.Of([]int{3}, []int{1, 3, 4}) {
			for _, fault := range []storetest.Fault{storetest.Before, storetest.LostReply} {
				synctest.Test(t, func(t *testing.T) {
					model := newModel(3)
					insertFor(t, model, action, n)
					s := storetest.Faulty(model, lostFor("Settle", at, 3*store.TokenTTL, fault))
					start(t, s)
					id := create(t, s, order)
					for range 30 {
						time.Sleep(10 * time.Second)
						retry(t, model)
					}
					requireOnce(t, model, action, n)
					w := get(t, s, id)
					require.Equal(t, store.WorkDone, w.State, "%s %d %v", action, at, fault)
					require.Equal(t, store.WorkCounts{Matched: n, Done: n}, w.WorkCounts, "%s %d %v", action, at, fault)
				})
			}
		}
	}
}

// A shard that is unavailable for a while delays the work, and no job is left out or counted twice.
func TestWork_WaitsForAnUnavailableShard(t *testing.T) {
	const n = 150
	all := orders()
	all[store.WorkRevive] = store.WorkOrder{
		Action: store.WorkRevive,
		Filter: store.Filter{Namespace: job.DefaultNamespace, States: []job.State{job.Dead}},
	}
	for action, order := range all {
		synctest.Test(t, func(t *testing.T) {
			model := newModel(3)
			if action == store.WorkRevive {
				insertDead(t, model, n)
			} else {
				insertFor(t, model, action, n)
			}
			s := &awayShard{Store: model}
			s.away.Store(true)
			start(t, s)
			id := create(t, s, order)
			time.Sleep(time.Minute)
			require.Equal(t, store.WorkRunning, get(t, s, id).State)
			s.away.Store(false)
			for range 60 {
				time.Sleep(time.Second)
				retry(t, model)
			}
			w := get(t, s, id)
			require.Equal(t, store.WorkDone, w.State)
			require.Equal(t, store.WorkCounts{Matched: n, Done: n}, w.WorkCounts)
			if action == store.WorkRevive {
				requireGeneration(t, model, n, 1)
			} else {
				requireOnce(t, model, action, n)
			}
		})
	}
}

// awayShard is a store one of whose shards refuses changes while away is set.
type awayShard struct {
	store.Store
	away atomic.Bool
}

func (s *awayShard) Shards() []store.Shard {
	faulty := storetest.Faulty(s.Store, func(method string) storetest.Fault {
		if s.away.Load() && slices.Contains([]string{"Revive", "Purge", "Cancel", "Replace"}, method) {
			return storetest.Before
		}
		return storetest.None
	})
	shards, n := slices.Clone(s.Store.Shards()), router.New(s.Store).ShardOf(queue(1))
	shards[n] = faulty.Shards()[n]
	return shards
}

// slowList is a store whose lists take a second.
type slowList struct{ store.Store }

func (s slowList) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return slowListShard{next} })
}

type slowListShard struct{ store.Shard }

func (s slowListShard) List(ctx context.Context, filter store.Filter) (store.Page, error) {
	time.Sleep(time.Second)
	return s.Shard.List(ctx, filter)
}

// Jobs that were run fail meanwhile, and wait behind those that were not.
func TestWork_RunsNoJobAgainThatFailedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 150
		model := newModel(3)
		insertWaiting(t, model, n)
		start(t, slowList{model})
		id := create(t, model, orders()[store.WorkRun])
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			retry(t, model)
		}
		requireOnce(t, model, store.WorkRun, n)
		w := get(t, model, id)
		require.Equal(t, store.WorkDone, w.State)
		require.Equal(t, store.WorkCounts{Matched: n, Done: n}, w.WorkCounts)
	})
}

// Jobs that were run fail meanwhile, and are due again after those that were not, but before another turn of theirs.
func TestWork_CountsNoJobAgainThatFailedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 50
		s := newModel(2)
		insertWaiting(t, s, n) // due in an hour, one a second
		start(t, s)
		order := orders()[store.WorkRun]
		order.Rate = policy.Rate{Starts: 1, Per: time.Minute}
		began := time.Now()
		id := create(t, s, order)
		for again := began.Add(time.Hour + 2*time.Minute); time.Now().Before(began.Add(time.Hour)); {
			time.Sleep(20 * time.Second)
			retryAfter(t, s, time.Until(again))
		}
		time.Sleep(10 * time.Minute)
		w := get(t, s, id)
		require.Equal(t, store.WorkDone, w.State)
		require.Equal(t, store.WorkCounts{Matched: n, Done: n}, w.WorkCounts)
	})
}

// Jobs that were run fail meanwhile, are selected again, and are edited before it is their turn.
func TestWork_CountsNoJobAgainThatIsEditedAfterItsSelection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 150
		s := newModel(1)
		jobs := make([]store.NewJob, n) // of one lane: those that fail wait behind the others
		for i := range jobs {
			jobs[i].Spec, jobs[i].Delay = job.Spec{ID: ref(i).ID, Queue: queue(0), URL: "https://a.example/"}, time.Hour
		}
		for _, result := range router.New(s).Insert(t.Context(), jobs) {
			require.NoError(t, result.Err)
		}
		time.Sleep(time.Second)
		startLate(t, s, time.Second)
		id := create(t, s, orders()[store.WorkRun])
		for range 60 {
			time.Sleep(300 * time.Millisecond)
			retry(t, s)
			for i := range n {
				found, err := router.New(s).Get(t.Context(), ref(i))
				require.NoError(t, err)
				if found.Version > 1 && found.Version < job.MaxEvents {
					_, err = router.New(s).Replace(t.Context(), ref(i), store.Replacement{Kind: job.EventEdited})
					require.NoError(t, err)
				}
			}
		}
		w := get(t, s, id)
		require.Equal(t, store.WorkDone, w.State)
		require.Equal(t, store.WorkCounts{Matched: n, Done: n}, w.WorkCounts)
	})
}

// A step whose settlement is lost has run jobs. They are due before another turn of theirs when it is repeated, and
// perhaps cannot be read then.
func TestWork_CountsJobsThatALostStepHasRun(t *testing.T) {
	for _, unread := range []time.Duration{0, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			const n, lost = 10, 2 * time.Hour
			model := newModel(2)
			insertWaiting(t, model, n) // due in an hour
			settles, began := lostFor("Settle", 2, lost, storetest.Before), time.Now()
			start(t, storetest.Faulty(model, func(called string) storetest.Fault {
				if called == "Get" && time.Since(began) < lost+unread {
					return storetest.Before
				}
				return settles(called)
			}))
			order := orders()[store.WorkRun]
			order.Rate = policy.Rate{Starts: 100, Per: time.Second}
			id := create(t, model, order)
			time.Sleep(3 * time.Hour)
			requireOnce(t, model, store.WorkRun, n)
			w := get(t, model, id)
			require.Equal(t, store.WorkDone, w.State)
			require.Equal(t, store.WorkCounts{Matched: n, Done: n}, w.WorkCounts, "unread for %v", unread)
		})
	}
}

func TestWork_RunsNoJobLaterThanItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 60 // due in an hour, one a second
		s := newModel(2)
		insertWaiting(t, s, n)
		start(t, s)
		order := orders()[store.WorkRun]
		order.Rate = policy.Rate{Starts: 1, Per: 4 * time.Minute}
		began := time.Now()
		id := create(t, s, order)
		time.Sleep(70 * time.Minute)
		w := get(t, s, id)
		require.Equal(t, store.WorkDone, w.State)
		require.EqualValues(t, n, w.Matched)
		require.EqualValues(t, 15, w.Done)
		require.Equal(t, "due before its turn", w.Failures[0].Reason)
		var starts []time.Time
		for i := range n {
			found, err := router.New(s).Get(t.Context(), ref(i))
			require.NoError(t, err)
			if len(found.Events) > 0 {
				starts = append(starts, found.DueAt)
			}
			require.False(t,
				found.DueAt.After(began.Add(time.Hour+time.Duration(i)*time.Second)), "not later than before")
		}
		require.Len(t, starts, 15)
		requireRate(t, starts, order.Rate)
	})
}

func TestWork_SkipsRunningJobsOfAnEditAndMarksThoseOfACancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel(1)
		insertWaiting(t, s, 4)
		start(t, s)
		time.Sleep(2 * time.Hour)
		r := router.New(s)
		claimed, err := r.Shards()[0].Claim(t.Context(), store.NewToken(), store.ClaimRequest{
			Queues: []store.QueueClaim{{Queue: queue(1), Max: 1, Timeout: time.Hour}}, Max: 1, MaxBytes: 1 << 20,
		})
		require.NoError(t, err)
		id := create(t, s, orders()[store.WorkEdit])
		time.Sleep(time.Minute)
		require.Equal(t, store.WorkCounts{Matched: 4, Done: 3, Skipped: 1, Failures: []store.WorkFailure{
			{ID: claimed.Jobs[0].ID, Reason: "the job is running"},
		}}, get(t, s, id).WorkCounts)
		id = create(t, s, orders()[store.WorkCancel])
		time.Sleep(time.Minute)
		require.Equal(t, store.WorkCounts{Matched: 4, Done: 4}, get(t, s, id).WorkCounts)
		found, err := r.Get(t.Context(), claimed.Jobs[0].Ref())
		require.NoError(t, err)
		require.True(t, found.CancelRequested)
	})
}
