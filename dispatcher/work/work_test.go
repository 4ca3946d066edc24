package work_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/carrier"
	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/dispatcher/work"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/storetest"
)

const lanes = 4

func queue(i int) job.Queue {
	return job.Queue{Namespace: job.DefaultNamespace, Topic: fmt.Sprint("topic-", i%2), Lane: fmt.Sprint("lane-",
		i%lanes)}
}

func ref(i int) job.Ref {
	return job.Ref{Namespace: job.DefaultNamespace, ID: fmt.Sprintf("job-%05d", i)}
}

// kill claims all due jobs of the queues and lets them die.
func kill(t testing.TB, s store.Store) (killed int) {
	t.Helper()
	r := router.New(s)
	for i := range lanes {
		q := queue(i)
		for {
			claimed, err := r.Shards()[r.ShardOf(q)].Claim(t.Context(), store.NewToken(), store.ClaimRequest{
				Queues: []store.QueueClaim{{Queue: q, Max: store.MaxBatch, Timeout: time.Minute}},
				Max:    store.MaxBatch, MaxBytes: 1 << 20,
			})
			require.NoError(t, err)
			if len(claimed.Jobs) == 0 {
				break
			}
			for _, j := range claimed.Jobs {
				_, _, err := r.Shards()[r.ShardOf(q)].Settle(t.Context(), store.NewToken(), []store.Settlement{{
					Ref: j.Ref(), Queue: q, Lease: j.Lease,
					Verdict: policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted},
				}}, nil)
				require.NoError(t, err)
				killed++
			}
		}
	}
	return killed
}

// insertDead inserts n dead jobs.
func insertDead(t testing.TB, s store.Store, n int) {
	t.Helper()
	var jobs []store.NewJob
	for i := range n {
		jobs = append(jobs,
			store.NewJob{New: job.New{Spec: job.Spec{ID: ref(i).ID, Queue: queue(i), URL: "https://a.example/"}}})
	}
	for _, result := range router.New(s).Insert(t.Context(), jobs) {
		require.NoError(t, result.Err)
	}
	killAll(t, s, n)
}

// killAll lets n jobs die, as soon as they are due.
func killAll(t testing.TB, s store.Store, n int) {
	t.Helper()
	for killed := 0; killed < n; {
		killed += kill(t, s)
	}
	time.Sleep(time.Second) // so that they have died before work is created
}

// changes implements work.Changes without checks.
type changes struct{ *router.Router }

func (changes) PrepareRevival(context.Context, *job.Job, *store.Revival) error { return nil }

func (c changes) EditJob(ctx context.Context, j *job.Job, edit job.Edit) (job.Job, error) {
	spec, err := codec.Change(&j.Spec, &edit.Spec, edit.Fields)
	if err != nil {
		return job.Job{}, err
	}
	return c.Replace(ctx, j.Ref(), store.Replacement{
		Kind: job.EventEdited, Fields: edit.Fields, Actor: edit.Actor, IfVersion: edit.IfVersion, Spec: &spec,
		Due: edit.Due, Expiry: edit.Expiry,
	})
}

// start runs a carrier and bulk work on a store until the test ends.
func start(t testing.TB, s store.Store) {
	t.Helper()
	startLate(t, s, 0)
}

// startLate runs them as start does, with steps that are late, as if those of other work were in between.
func startLate(t testing.TB, s store.Store, late time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log := slog.New(slog.DiscardHandler)
	w := &work.Worker{Jobs: router.New(s), Changes: changes{router.New(s)}, Logger: log}
	runner := internaljobs.New(internaljobs.Options{Store: s, Logger: log, Handlers: map[string]internaljobs.Handler{
		job.WorkTopic: func(ctx context.Context, j *store.ClaimedJob) (internaljobs.Step, error) {
			next, err := w.Step(ctx, j)
			next.Wait += late
			return next, err
		},
	}})
	var all sync.WaitGroup
	all.Go(func() { carrier.New(router.New(s), log).Run(ctx) })
	all.Go(func() { runner.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
}

func create(t testing.TB, s store.Store, o store.WorkOrder) string {
	t.Helper()
	w, err := work.Create(t.Context(), router.New(s), job.DefaultNamespace, o)
	require.NoError(t, err)
	require.Equal(t, store.WorkRunning, w.State)
	return w.ID
}

// allDead selects all dead jobs.
func allDead() store.Filter {
	return store.Filter{Namespace: job.DefaultNamespace, States: []job.State{job.Dead}}
}

func get(t testing.TB, s store.Store, id string) store.Work {
	t.Helper()
	w, err := work.Get(t.Context(), router.New(s), job.DefaultNamespace, id)
	require.NoError(t, err)
	return w
}

// requireGeneration requires that each of n jobs was revived so many times.
func requireGeneration(t *testing.T, s store.Store, n, generation int) {
	t.Helper()
	for i := range n {
		found, err := router.New(s).Get(t.Context(), ref(i))
		require.NoError(t, err)
		require.Equal(t, generation, found.Generation, "%v", found.Events)
	}
}

func newModel(shards int) store.Store {
	return storetest.NewModel(storetest.ModelOptions{Shards: shards})
}

func TestWork_RevivesEachJobOnceWhateverCallFails(t *testing.T) {
	n := testkit.Of(520, 700) // more than a batch
	for _, method := range []string{"", "Claim", "Settle", "Revive", "Wait", "Carry"} {
		for _, fault := range []storetest.Fault{storetest.Before, storetest.LostReply} {
			for _, nth := range testkit.Of([]int{2, 5}, []int{1, 3, 5, 7}) {
				t.Run(fmt.Sprint(method, fault, nth), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := newModel(3)
						insertDead(t, s, n)
						s = storetest.Faulty(s, storetest.Nth(method, nth, fault))
						start(t, s)
						id := create(t, s, store.WorkOrder{Action: store.WorkRevive, Filter: allDead()})
						time.Sleep(time.Minute)
						requireGeneration(t, s, n, 1)
						w := get(t, s, id)
						require.Equal(t, store.WorkDone, w.State)
						require.Equal(t, store.WorkCounts{Matched: int64(n), Done: int64(n)}, w.WorkCounts)
						require.True(t, w.Listed)
					})
				})
			}
		}
	}
}

// lostFor fails the nth call of a method with a fault, and all others of the next while before they take effect.
func lostFor(method string, nth int, while time.Duration, fault storetest.Fault) func(string) storetest.Fault {
	var mu sync.Mutex
	calls, until := 0, time.Time{}
	return func(called string) storetest.Fault {
		mu.Lock()
		defer mu.Unlock()
		if called != method {
			return storetest.None
		}
		if calls++; calls == nth {
			until = time.Now().Add(while)
			return fault
		}
		if time.Now().Before(until) {
			return storetest.Before
		}
		return storetest.None
	}
}

// The store forgets tokens after a minute. A step whose settlement is lost for longer is repeated, and the jobs that it
// has revived have died again.
func TestWork_RevivesEachJobOnceWhenAStepIsRepeatedLater(t *testing.T) {
	const n = 600
	for _, at := range testkit.Of([]int{3, 6}, []int{1, 3, 5, 6}) {
		for _, fault := range []storetest.Fault{storetest.Before, storetest.LostReply} {
			synctest.Test(t, func(t *testing.T) {
				model := newModel(3)
				insertDead(t, model, n)
				s := storetest.Faulty(model, lostFor("Settle", at, 3*store.TokenTTL, fault))
				start(t, s)
				id := create(t, s, store.WorkOrder{Action: store.WorkRevive, Filter: allDead()})
				for range 10 {
					time.Sleep(time.Minute)
					kill(t, model)
				}
				requireGeneration(t, s, n, 1)
				w := get(t, s, id)
				require.Equal(t, store.WorkDone, w.State)
				require.Equal(t, store.WorkCounts{Matched: n, Done: n}, w.WorkCounts)
			})
		}
	}
}

func TestWork_PurgesAndLeavesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel(2)
		insertDead(t, s, 100)
		start(t, s)
		f := allDead()
		f.Topic = queue(0).Topic
		id := create(t, s, store.WorkOrder{Action: store.WorkPurge, Filter: f})
		time.Sleep(time.Minute)
		require.Equal(t, store.WorkCounts{Matched: 50, Done: 50}, get(t, s, id).WorkCounts)
		for i := range 100 {
			_, err := router.New(s).Get(t.Context(), ref(i))
			if i%2 == 0 {
				require.ErrorIs(t, err, store.ErrNotFound)
			} else {
				require.NoError(t, err)
			}
		}
	})
}

func TestWork_SaysWhyItSkipsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel(2)
		insertDead(t, s, 100)
		alive := store.NewJob{New: job.New{Spec: job.Spec{ID: "alive", Queue: queue(0)}, Delay: time.Hour}}
		require.NoError(t, router.New(s).Insert(t.Context(), []store.NewJob{alive})[0].Err)
		start(t, s)
		ids := []string{"unknown", "alive"}
		for i := range 100 {
			ids = append(ids, ref(i).ID)
		}
		id := create(t, s, store.WorkOrder{Action: store.WorkRevive, IDs: ids, Filter: allDead()})
		time.Sleep(time.Minute)
		w := get(t, s, id)
		require.Equal(t, store.WorkCounts{Matched: 102, Done: 100, Skipped: 2, Failures: []store.WorkFailure{
			{ID: "unknown", Reason: "not found"}, {ID: "alive", Reason: "the job is scheduled"},
		}}, w.WorkCounts)
		requireGeneration(t, s, 100, 1)
	})
}

func TestWork_TwoAtOnceReviveEachJobOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 600
		s := newModel(3)
		insertDead(t, s, n)
		start(t, s)
		start(t, s)
		one := create(t, s, store.WorkOrder{Action: store.WorkRevive, Filter: allDead()})
		two := create(t, s, store.WorkOrder{Action: store.WorkRevive, Filter: allDead()})
		time.Sleep(time.Minute)
		requireGeneration(t, s, n, 1)
		a, b := get(t, s, one), get(t, s, two)
		require.Equal(t, store.WorkDone, a.State)
		require.Equal(t, store.WorkDone, b.State)
		require.GreaterOrEqual(t, a.Done+b.Done, int64(n))
		for _, w := range []store.Work{a, b} {
			require.Equal(t, w.Matched, w.Done+w.Failed+w.Skipped)
		}
	})
}

func TestWork_Stops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		s := newModel(1)
		insertDead(t, s, n)
		start(t, s)
		id := create(t, s, store.WorkOrder{
			Action: store.WorkRevive, Filter: allDead(),
			Rate: policy.Rate{Starts: 1, Per: time.Second},
		})
		time.Sleep(time.Minute)
		_, err := work.Stop(t.Context(), router.New(s), job.DefaultNamespace, id, "jan")
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Equal(t, store.WorkStopped, get(t, s, id).State, "the step in progress has ended")
		time.Sleep(time.Hour)
		w := get(t, s, id)
		require.Equal(t, store.WorkStopped, w.State)
		require.GreaterOrEqual(t, w.Done, int64(50))
		require.LessOrEqual(t, w.Done, int64(75), "at most the starts of the next 10 s are planned")
		_, err = work.Stop(t.Context(), router.New(s), job.DefaultNamespace, id, "")
		require.NoError(t, err)
		_, err = work.Stop(t.Context(), router.New(s), job.DefaultNamespace, "unknown", "")
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

// requireRate requires that no window has more starts than the rate.
func requireRate(t *testing.T, starts []time.Time, rate policy.Rate) {
	t.Helper()
	slices.SortFunc(starts, time.Time.Compare)
	for i := rate.Starts; i < len(starts); i++ {
		require.GreaterOrEqual(t, starts[i].Sub(starts[i-rate.Starts]), rate.Per)
	}
}

// slowRevive is a store on which a revival takes effect after a while.
type slowRevive struct{ store.Store }

func (s slowRevive) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return slowReviveShard{next} })
}

type slowReviveShard struct{ store.Shard }

func (s slowReviveShard) Revive(
	ctx context.Context, token store.Token, items []store.Revival,
) ([]store.ReviveResult, error) {
	time.Sleep(400 * time.Millisecond)
	return s.Shard.Revive(ctx, token, items)
}

func TestWork_KeepsItsRateOnASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		rate := policy.Rate{Starts: 20, Per: time.Second}
		s := newModel(1)
		insertDead(t, s, n)
		start(t, slowRevive{s})
		id := create(t, s, store.WorkOrder{Action: store.WorkRevive, Filter: allDead(), Rate: rate})
		time.Sleep(time.Minute)
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

func TestWork_KeepsItsRatesExactlyAlsoWhenStepsAreRepeated(t *testing.T) {
	const n = 300
	all := [][2]policy.Rate{
		{{Starts: 9, Per: time.Second}, {Starts: 3, Per: 1300 * time.Millisecond}},
		{{Starts: 20, Per: time.Second}, {}},
		{{}, {Starts: 5, Per: time.Second}},
		{{Starts: 50, Per: time.Second}, {Starts: 2, Per: time.Second}},
		{{Starts: 30, Per: time.Second}, {Starts: 90, Per: time.Second}},
		{{Starts: 1000, Per: time.Second}, {Starts: 300, Per: time.Second}},
	}
	some := all[:testkit.Of(2, len(all))]
	for faulty, pairs := range map[bool][][2]policy.Rate{false: all, true: some} {
		for _, rates := range pairs {
			t.Run(fmt.Sprint(faulty, rates), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newModel(2)
					insertDead(t, s, n)
					if faulty {
						s = storetest.Faulty(s, storetest.Share(7, 0.1))
					}
					start(t, s)
					began := time.Now()
					id := create(t, s, store.WorkOrder{
						Action: store.WorkRevive, Filter: allDead(), Rate: rates[0],
						LaneRate: rates[1], Delay: 10 * time.Second,
					})
					time.Sleep(map[bool]time.Duration{false: 2 * time.Minute, true: 10 * time.Minute}[faulty])
					require.Equal(t, store.WorkCounts{Matched: n, Done: n}, get(t, s, id).WorkCounts)
					var starts []time.Time
					byLane := make(map[job.Queue][]time.Time)
					for i := range n {
						found, err := router.New(s).Get(t.Context(), ref(i))
						require.NoError(t, err)
						require.Equal(t, 1, found.Generation)
						starts = append(starts, found.DueAt)
						byLane[found.Queue] = append(byLane[found.Queue], found.DueAt)
					}
					require.False(t, slices.MinFunc(starts, time.Time.Compare).Before(began.Add(10*time.Second)))
					if rates[0].Limited() {
						requireRate(t, starts, rates[0])
					}
					if rates[1].Limited() {
						for _, starts := range byLane {
							requireRate(t, starts, rates[1])
						}
					}
					if last := slices.MaxFunc(starts, time.Time.Compare); !faulty {
						require.Less(t, last.Sub(began), 60*time.Second, "no more is lost than what repeats cost")
					}
				})
			})
		}
	}
}
