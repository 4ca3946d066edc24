package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/carrier"
	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/dispatcher/schedules"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
	"github.com/ringback/ringback/store/storetest"
)

const (
	ns    = job.DefaultNamespace
	topic = "report"
	name  = "daily"
)

// registrar implements schedules.Registrar without checks.
type registrar struct {
	mu  sync.Mutex
	err error // of PrepareJobs
}

func (r *registrar) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *registrar) CheckJob(_ context.Context, n job.New) (job.Spec, error) { return n.Spec, nil }

func (r *registrar) PrepareJobs(_ context.Context, jobs []job.New) ([]store.NewJob, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var prepared []store.NewJob
	for _, n := range jobs {
		if r.err != nil {
			break
		}
		prepared = append(prepared, store.NewJob{New: n, Fingerprint: codec.Fingerprint(&n)})
	}
	return prepared, r.err
}

// service returns the schedules of a store.
func service(s store.Store, r schedules.Registrar) *schedules.Service {
	return schedules.New(schedules.Options{
		Settings: s, Jobs: router.New(s), Registrar: r,
		Logger: slog.New(slog.DiscardHandler),
	})
}

// start runs a process on a store: a carrier and the steps of schedules. It is stopped at the latest when the test
// ends.
func start(t testing.TB, s store.Store, r schedules.Registrar) (stop context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log := slog.New(slog.DiscardHandler)
	made := service(s, r)
	runner := internaljobs.New(internaljobs.Options{
		Store: s, Logger: log,
		Handlers: map[string]internaljobs.Handler{job.ScheduleTopic: made.Step},
	})
	var all sync.WaitGroup
	all.Go(func() { carrier.New(router.New(s), log).Run(ctx) })
	all.Go(func() { runner.Run(ctx) })
	all.Go(func() { made.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	return cancel
}

func newModel() store.Store { return storetest.NewModel(storetest.ModelOptions{Shards: 3}) }

// settings are those of a schedule with a job.
func settings(spec schedule.Spec) store.ScheduleSettings {
	return store.ScheduleSettings{
		Spec: spec, Job: job.Spec{Queue: job.Queue{Topic: topic, Lane: "a"}, URL: "https://a.example/"},
		Overlap: store.OverlapAllow, CatchUp: store.CatchUp{Window: time.Hour, Runs: store.CatchUpLast},
	}
}

func every(d time.Duration) store.ScheduleSettings { return settings(schedule.Spec{Every: d}) }

// put puts a schedule and returns it.
func put(t testing.TB, s store.Store, set store.ScheduleSettings) store.Schedule {
	t.Helper()
	put, err := service(s, new(registrar)).Put(t.Context(), ns, name, store.ChangeOptions{},
		func(stored *store.Schedule) error {
			stored.ScheduleSettings = set
			return nil
		})
	require.NoError(t, err)
	return put
}

func change(t testing.TB, s store.Store, do func(*store.Schedule)) {
	t.Helper()
	_, err := service(s, new(registrar)).Change(t.Context(), ns, name, store.ChangeOptions{},
		func(stored *store.Schedule) error {
			do(stored)
			return nil
		})
	require.NoError(t, err)
}

func get(t testing.TB, s store.Store) store.Schedule {
	t.Helper()
	found, err := service(s, new(registrar)).Get(t.Context(), ns, name)
	require.NoError(t, err)
	return found
}

// ticksOf returns the ticks whose jobs are in the store, in order.
func ticksOf(t testing.TB, s store.Store) (ticks []time.Time) {
	t.Helper()
	filter := store.Filter{Namespace: ns, Topic: topic, Limit: store.MaxListLimit}
	for {
		page, err := router.New(s).List(t.Context(), filter)
		require.NoError(t, err)
		for i := range page.Jobs {
			at, ok := job.ScheduledAt(page.Jobs[i].ID, page.Jobs[i].Queue)
			require.True(t, ok, page.Jobs[i].ID)
			require.Equal(t, job.TickID(name, at), page.Jobs[i].ID)
			ticks = append(ticks, at)
		}
		if filter.After = page.Reached; !page.More {
			slices.SortFunc(ticks, time.Time.Compare)
			return ticks
		}
	}
}

// between returns the multiples of a duration after a time and until another.
func between(after, until time.Time, d time.Duration) (ticks []time.Time) {
	for at := after.Truncate(d).Add(d); !at.After(until); at = at.Add(d) {
		ticks = append(ticks, at.UTC())
	}
	return ticks
}

// A process that dies in a call: all of its later calls fail.
func mortal(s store.Store, random *rand.Rand, share float64, mu *sync.Mutex) (wrapped store.Store, died *atomic.Bool) {
	died = new(atomic.Bool)
	return storetest.Faulty(s, func(method string) storetest.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case died.Load():
			return storetest.Before
		case method != "Claim" && method != "Settle" && method != "Carry" || random.Float64() >= share:
			return storetest.None
		}
		died.Store(true)
		if random.IntN(2) == 0 {
			return storetest.Before
		}
		return storetest.LostReply
	}), died
}

// Three processes, each of which dies again and again in a call that claims, settles or carries, with a clock hours
// behind the store's.
func TestSchedules_MakeOneJobOfEachTickWhateverDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 20 * time.Second
		const ahead = 5 * time.Hour
		s := storetest.NewModel(storetest.ModelOptions{
			Shards: 2,
			Now:    func() time.Time { return time.Now().Add(ahead) },
		})
		random := rand.New(rand.NewPCG(1, 1))
		var mu sync.Mutex
		deaths := 0
		live := func() (replace func()) {
			wrapped, died := mortal(s, random, 0.02, &mu)
			stop := start(t, wrapped, new(registrar))
			return func() {
				if died.Load() {
					stop()
					deaths++
					wrapped, died = mortal(s, random, 0.02, &mu)
					stop = start(t, wrapped, new(registrar))
				}
			}
		}
		processes := []func(){live(), live(), live()}
		created := time.Now().Add(ahead)
		set := every(period)
		set.CatchUp.Runs = store.CatchUpAll // some die several times in a tick
		put(t, s, set)
		for end := time.Now().Add(testkit.Of(25*time.Minute, time.Hour)); time.Now().Before(end); {
			time.Sleep(5 * time.Second)
			for _, replace := range processes {
				replace()
			}
		}
		until := time.Now().Add(ahead)
		time.Sleep(2 * time.Minute) // for what died last
		start(t, s, new(registrar))
		time.Sleep(2*time.Minute + period/2)
		require.Greater(t, deaths, 10)
		found, made := get(t, s), ticksOf(t, s)
		require.Subset(t, made, between(created, until, period))
		require.Zero(t, found.Counts.Missed)
		require.Equal(t, int64(len(made)), found.Counts.Run, "each tick was counted once")
		require.Len(t, slices.CompactFunc(slices.Clone(made), time.Time.Equal), len(made))
	})
}

func TestSchedules_RunNeitherEarlyNorLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		set := every(10 * time.Minute)
		set.Jitter = 5 * time.Minute
		start(t, s, new(registrar))
		delay := put(t, s, set).Delay
		require.Equal(t, "Every 10 minutes", get(t, s).Description)
		require.Positive(t, delay)
		require.Less(t, delay, 5*time.Minute)
		for range 5 {
			next := get(t, s).Next[0].At
			time.Sleep(time.Until(next.Add(delay)) - time.Millisecond)
			require.NotContains(t, ticksOf(t, s), next)
			time.Sleep(100 * time.Millisecond)
			require.Contains(t, ticksOf(t, s), next, "the job is due once the jitter is over")
		}
	})
}

// calls returns the number of calls to a store of one process in some minutes, by method.
func calls(t *testing.T, prepare func(store.Store)) map[string]int {
	t.Helper()
	s := newModel()
	var mu sync.Mutex
	count := make(map[string]int)
	counted := storetest.Faulty(s, func(method string) storetest.Fault {
		mu.Lock()
		defer mu.Unlock()
		count[method]++
		return storetest.None
	})
	stop := start(t, counted, new(registrar))
	prepare(s)
	time.Sleep(time.Minute)
	mu.Lock()
	clear(count)
	mu.Unlock()
	time.Sleep(5 * time.Minute)
	stop()
	synctest.Wait()
	return count
}

// 1,000 schedules cost nothing between their ticks.
func TestSchedules_CostNothingBetweenTicks(t *testing.T) {
	var without, with map[string]int
	synctest.Test(t, func(t *testing.T) { without = calls(t, func(store.Store) {}) })
	synctest.Test(t, func(t *testing.T) {
		with = calls(t, func(s store.Store) {
			for i := range testkit.Of(200, store.MaxSchedules) {
				_, err := service(s, new(registrar)).Put(t.Context(), ns, "s"+
					strconv.Itoa(i), store.ChangeOptions{}, func(stored *store.Schedule) error {
					stored.ScheduleSettings = settings(schedule.Spec{Cron: "0 8 1 6 *", Timezone: "Europe/Berlin"})
					return nil
				})
				require.NoError(t, err)
			}
		})
	})
	require.Greater(t, without["Carry"], 100)
	require.Len(t, with, len(without), "no other methods: %v, %v", with, without)
	for method, n := range without {
		require.InDelta(t, n, with[method], 10, method) // at the edges of the time
	}
}

// catchUp creates a schedule, lets it run for a while, stops the process for some time, and returns the ticks that ran
// after the outage began, the schedule, and the time of the outage.
func catchUp(
	t *testing.T, set store.ScheduleSettings, outage time.Duration,
) (ran []time.Time, found store.Schedule, from, to time.Time) {
	t.Helper()
	s := newModel()
	stop := start(t, s, new(registrar))
	put(t, s, set)
	time.Sleep(set.Every + time.Second)
	stop()
	from = time.Now()
	time.Sleep(outage)
	to = time.Now()
	start(t, s, new(registrar))
	time.Sleep(3 * time.Minute)
	for _, tick := range ticksOf(t, s) {
		if tick.After(from) && !tick.After(to) {
			ran = append(ran, tick)
		}
	}
	return ran, get(t, s), from, to
}

func TestCatchUp_RunsTheLateTicksThatItShould(t *testing.T) {
	const period = 10 * time.Minute
	for _, c := range []struct {
		catchUp      store.CatchUp
		outage       time.Duration
		run, missed  int
		newest, late bool
	}{
		{catchUp: store.CatchUp{Runs: store.CatchUpNone, Window: time.Hour}, outage: 65 * time.Minute, missed: 6},
		{
			catchUp: store.CatchUp{Runs: store.CatchUpLast, Window: time.Hour}, outage: 65 * time.Minute, run: 1,
			missed: 5, newest: true,
		},
		{catchUp: store.CatchUp{Runs: store.CatchUpLast, Window: 2 * time.Minute}, outage: 65 * time.Minute, missed: 6},
		{
			catchUp: store.CatchUp{Runs: store.CatchUpAll, Window: 36 * time.Minute}, outage: 65 * time.Minute, run: 4,
			missed: 2, newest: true,
		},
		{
			catchUp: store.CatchUp{Runs: store.CatchUpAll, Window: 24 * time.Hour},
			outage:  65 * time.Minute, run: 6, newest: true,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			set := every(period)
			set.CatchUp = c.catchUp
			ran, found, from, to := catchUp(t, set, c.outage)
			due := between(from, to, period)
			require.Len(t, due, 6)
			require.Len(t, ran, c.run, "%+v", c)
			require.Equal(t, int64(c.missed), found.Counts.Missed, "%+v", c)
			if c.newest {
				require.Equal(t, due[len(due)-len(ran):], ran, "the newest ones")
			}
		})
	}
}

// A tick that is hardly late runs whatever catch_up says, so that a process that dies costs none.
func TestCatchUp_LeavesPunctualTicksAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := every(10 * time.Second)
		set.CatchUp = store.CatchUp{Runs: store.CatchUpNone, Window: time.Second}
		ran, found, _, _ := catchUp(t, set, 50*time.Second)
		require.Len(t, ran, 5)
		require.Zero(t, found.Counts.Missed)
	})
}

// A year without a process: at most 1,000 ticks of each minute run, ten a second, and the others are counted in bounded
// steps.
func TestCatchUp_IsBoundedAfterAYear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const year = 365 * 24 * time.Hour
		s := newModel()
		put(t, s, settings(schedule.Spec{Every: time.Minute}))
		change(t, s, func(stored *store.Schedule) {
			stored.CatchUp = store.CatchUp{Runs: store.CatchUpAll, Window: 366 * 24 * time.Hour}
		})
		time.Sleep(year)
		began := time.Now()
		start(t, s, new(registrar))
		for get(t, s).Counts.Run < store.MaxCatchUp {
			time.Sleep(time.Second)
		}
		require.WithinRange(t, time.Now(), began.Add(95*time.Second), began.Add(3*time.Minute), "ten a second")
		time.Sleep(10 * time.Minute)
		found := get(t, s)
		require.Equal(t, int64(year/time.Minute)-store.MaxCatchUp, found.Counts.Missed)
		require.Equal(t, int64(len(ticksOf(t, s))), found.Counts.Run)
		require.Len(t, found.Last, store.MaxScheduleTicks)
	})
}

// A year of seconds is counted at once, and 30 days of minutes of a cron text in five steps.
func TestCatchUp_CountsMissedTicksInFewSteps(t *testing.T) {
	const day = 24 * time.Hour
	for spec, outage := range map[schedule.Spec]time.Duration{
		{Every: time.Second}: 365 * day, {Cron: "* * * * *", Timezone: "Europe/Berlin"}: 30 * day,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newModel()
			var steps atomic.Int64
			counted := storetest.Faulty(s, func(method string) storetest.Fault {
				if method == "Settle" {
					steps.Add(1)
				}
				return storetest.None
			})
			set := settings(spec)
			set.CatchUp.Runs = store.CatchUpNone
			put(t, s, set)
			time.Sleep(outage)
			start(t, counted, new(registrar))
			time.Sleep(10 * time.Second)
			found := get(t, s)
			ticks := outage / time.Minute
			if spec.Every > 0 {
				ticks = outage / spec.Every
			}
			require.InDelta(t, int64(ticks), found.Counts.Missed+found.Counts.Run, 30)
			require.LessOrEqual(t, found.Counts.Run, int64(75), "those of the last minute, and of the time since")
			require.Less(t, steps.Load(), int64(30))
			require.Len(t, found.Last, store.MaxScheduleTicks)
			require.True(t,
				slices.IsSortedFunc(found.Last, func(a, b store.ScheduleTick) int { return a.At.Compare(b.At) }))
		})
	}
}

// finish ends the ready jobs of the topic with a verdict.
func finish(t testing.TB, s store.Store, verdict policy.Verdict) (ended int) {
	t.Helper()
	return len(finishSome(t, s, verdict, 10))
}

// finishSome ends the first ready jobs of the topic with a verdict.
func finishSome(t testing.TB, s store.Store, verdict policy.Verdict, most int) (ended []job.Ref) {
	t.Helper()
	r := router.New(s)
	q := job.Queue{Namespace: ns, Topic: topic, Lane: "a"}
	shard := r.Shards()[r.ShardOf(q)]
	claimed, err := shard.Claim(t.Context(), store.NewToken(), store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: q, Max: most, Timeout: time.Minute}}, Max: most, MaxBytes: 1 << 20,
	})
	require.NoError(t, err)
	for _, j := range claimed.Jobs {
		errs, _, err := shard.Settle(t.Context(), store.NewToken(), []store.Settlement{{
			Ref: j.Ref(), Queue: q, Lease: j.Lease, Verdict: verdict, Attempt: job.Attempt{N: 1, Kind: job.KindAttempt},
		}}, nil)
		require.NoError(t, err)
		require.NoError(t, errs[0])
		ended = append(ended, j.Ref())
	}
	return ended
}

var (
	dead      = policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted}
	delivered = policy.Verdict{Kind: policy.Delivered}
)

func TestOverlap_SkipsOrCancelsWhileTheLastJobIsUnfinished(t *testing.T) {
	for _, overlap := range []store.Overlap{store.OverlapAllow, store.OverlapSkip, store.OverlapCancel} {
		synctest.Test(t, func(t *testing.T) {
			s := newModel()
			start(t, s, new(registrar))
			set := every(time.Minute)
			set.Overlap = overlap
			put(t, s, set)
			time.Sleep(3*time.Minute + time.Second)
			found := get(t, s)
			states := make([]job.State, len(found.Last))
			for i, tick := range found.Last {
				states[i] = tick.JobState
			}
			switch overlap {
			case store.OverlapAllow:
				require.Equal(t, []job.State{job.Ready, job.Ready, job.Ready}, states)
			case store.OverlapSkip:
				require.Equal(t, []job.State{job.Ready, "", ""}, states)
				require.Equal(t, store.ScheduleCounts{Run: 1, Skipped: 2}, found.Counts)
				require.Equal(t, 1, finish(t, s, delivered))
				time.Sleep(time.Minute)
				require.Equal(t, int64(2), get(t, s).Counts.Run)
			case store.OverlapCancel:
				require.Equal(t, []job.State{job.Cancelled, job.Cancelled, job.Ready}, states)
				cancelled, err := router.New(s).Get(t.Context(), job.Ref{Namespace: ns, ID: found.Last[0].JobID})
				require.NoError(t, err)
				require.Equal(t, "schedule:"+name, cancelled.Events[0].Actor)
			}
		})
	}
}

// A job is not cancelled for one that is refused, or that waits for a quota.
func TestOverlap_CancelsOnlyForAJobThatRuns(t *testing.T) {
	for _, err := range []error{&job.UndeclaredTopicError{Topic: topic}, &job.QuotaError{RetryAfter: time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			s := newModel()
			r := new(registrar)
			start(t, s, r)
			set := every(time.Minute)
			set.Overlap = store.OverlapCancel
			put(t, s, set)
			time.Sleep(time.Minute + time.Second)
			r.fail(err)
			time.Sleep(time.Minute)
			require.Equal(t, job.Ready, get(t, s).Last[0].JobState)
			r.fail(nil)
			time.Sleep(time.Minute)
			require.Equal(t, job.Cancelled, get(t, s).Last[0].JobState)
		})
	}
}

func TestPauseAfterDead_PausesUntilItIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		start(t, s, new(registrar))
		set := every(time.Minute)
		set.PauseAfterDead = 2
		put(t, s, set)
		time.Sleep(time.Second)
		for _, verdict := range []policy.Verdict{dead, delivered, dead, dead} {
			require.False(t, get(t, s).Paused)
			time.Sleep(time.Minute)
			require.Equal(t, 1, finish(t, s, verdict))
		}
		time.Sleep(10 * time.Minute)
		found := get(t, s)
		require.True(t, found.Paused)
		require.Contains(t, found.Pause.Note, "the last 2 jobs died")
		require.Equal(t, int64(4), found.Counts.Run)
		change(t, s, func(stored *store.Schedule) { stored.Paused = false })
		time.Sleep(time.Minute)
		require.Equal(t, store.ScheduleCounts{Run: 5}, get(t, s).Counts, "the ticks of the pause do not count")
	})
}

// Jobs from before a pause that die in it do not pause the schedule again.
func TestPauseAfterDead_CountsFromTheResumption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		start(t, s, new(registrar))
		set := every(time.Minute)
		set.PauseAfterDead = 2
		put(t, s, set)
		time.Sleep(3*time.Minute + time.Second)
		change(t, s, func(stored *store.Schedule) { stored.Paused = true })
		time.Sleep(time.Second) // the leading process notices a pause, and not one that ends at once
		require.Equal(t, 3, finish(t, s, dead))
		change(t, s, func(stored *store.Schedule) { stored.Paused = false })
		time.Sleep(2 * time.Minute)
		require.False(t, get(t, s).Paused)
		require.Equal(t, 2, finish(t, s, dead))
		time.Sleep(time.Minute)
		require.True(t, get(t, s).Paused)
	})
}

// Jobs that die long after their ticks, when many others have run, count.
func TestPauseAfterDead_CountsJobsThatDieLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		start(t, s, new(registrar))
		set := every(time.Minute)
		set.PauseAfterDead = 3
		put(t, s, set)
		time.Sleep(150*time.Minute + time.Second)
		for i, verdict := range []policy.Verdict{dead, dead, delivered, dead, dead, dead} {
			require.False(t, get(t, s).Paused, i)
			require.Len(t, finishSome(t, s, verdict, 1), 1)
			time.Sleep(time.Minute)
		}
		require.True(t, get(t, s).Paused)
	})
}

// Delivered jobs count although they are removed before the next tick.
func TestPauseAfterDead_CountsJobsThatAreNotRetained(t *testing.T) {
	for _, period := range []time.Duration{time.Minute, 20 * time.Minute} { // the id is known, and forgotten
		synctest.Test(t, func(t *testing.T) {
			defaults := policy.Topic{IDWindow: new(5 * time.Minute)}.WithDefaults(policy.Builtin())
			s := storetest.NewModel(storetest.ModelOptions{Shards: 3, Defaults: defaults})
			start(t, s, new(registrar))
			set := every(period)
			set.PauseAfterDead = 2
			put(t, s, set)
			time.Sleep(time.Second)
			for _, verdict := range []policy.Verdict{dead, delivered, dead, delivered, dead, dead} {
				require.False(t, get(t, s).Paused)
				time.Sleep(period)
				ended := finishSome(t, s, verdict, 1)
				require.Len(t, ended, 1)
				if verdict == delivered {
					require.NoError(t, router.New(s).Purge(t.Context(), []store.Removal{{Ref: ended[0]}})[0])
				}
			}
			time.Sleep(period)
			require.True(t, get(t, s).Paused)
		})
	}
}

// Jobs of late ticks that are not relayed from the outbox yet are not taken for delivered ones.
func TestPauseAfterDead_CountsLateTicksOnceTheyAreRelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		stop := start(t, s, new(registrar))
		set := every(time.Minute)
		set.CatchUp.Runs, set.PauseAfterDead = store.CatchUpAll, 20
		put(t, s, set)
		time.Sleep(time.Second)
		stop()
		time.Sleep(30 * time.Minute)
		var relays atomic.Bool
		start(t, storetest.Faulty(s, func(method string) storetest.Fault {
			if method == "Insert" && !relays.Load() {
				return storetest.Before
			}
			return storetest.None
		}), new(registrar))
		time.Sleep(30 * time.Second)
		relays.Store(true)
		time.Sleep(10 * time.Second)
		require.Len(t, finishSome(t, s, dead, 100), 30)
		time.Sleep(2 * time.Minute)
		require.True(t, get(t, s).Paused)
	})
}

func TestMaxRuns_EndsTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		start(t, s, new(registrar))
		set := every(time.Minute)
		set.MaxRuns = 3
		require.Len(t, put(t, s, set).Next, 3)
		time.Sleep(10 * time.Minute)
		found := get(t, s)
		require.True(t, found.Ended)
		require.Equal(t, int64(3), found.Counts.Run)
		set.MaxRuns = 4
		put(t, s, set)
		time.Sleep(time.Second)
		require.Equal(t, store.ScheduleCounts{Run: 3}, get(t, s).Counts, "ticks after its end do not count")
		time.Sleep(10 * time.Minute)
		require.Equal(t, store.ScheduleCounts{Run: 4}, get(t, s).Counts, "a larger bound lets it go on")
	})
}

// A schedule that goes on after its end, or that begins earlier than it should have, counts ticks from the change on.
func TestBounds_CountNoTicksFromBeforeTheirChange(t *testing.T) {
	for _, later := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := newModel()
			start(t, s, new(registrar))
			set := every(time.Minute)
			set.CatchUp.Runs = store.CatchUpAll
			began := time.Now()
			set.StartsAt, set.EndsAt = began, began.Add(150*time.Second)
			if !later {
				set.StartsAt, set.EndsAt = began.Add(time.Hour), time.Time{}
			}
			put(t, s, set)
			time.Sleep(20*time.Minute + 30*time.Second)
			before := get(t, s)
			require.Equal(t, later, before.Ended)
			set.StartsAt, set.EndsAt = began, began.Add(time.Hour)
			put(t, s, set)
			time.Sleep(time.Minute)
			require.Equal(t, store.ScheduleCounts{Run: before.Counts.Run + 1}, get(t, s).Counts)
		})
	}
}

// A tick that has passed, whose job is not due yet, runs although the timing changes.
func TestChange_LeavesDelayedTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		start(t, s, new(registrar))
		set := every(time.Hour)
		set.Jitter = 50 * time.Minute
		delay := put(t, s, set).Delay
		require.Greater(t, delay, time.Minute)
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Minute)))
		set.Every = 30 * time.Minute
		put(t, s, set)
		time.Sleep(delay)
		require.Equal(t, int64(1), get(t, s).Counts.Run)
	})
}

// A change holds although its client leaves before the answer.
func TestPut_WakesTheScheduleOfAClientThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		start(t, s, new(registrar))
		put(t, s, every(24*time.Hour))
		time.Sleep(time.Second)
		ctx, leave := context.WithCancel(t.Context())
		leaving := schedules.New(schedules.Options{
			Settings: leftAfter{s, leave}, Jobs: heeding{router.New(s)},
			Registrar: new(registrar), Logger: slog.New(slog.DiscardHandler),
		})
		_, _ = leaving.Put(ctx, ns, name, store.ChangeOptions{}, func(stored *store.Schedule) error {
			stored.ScheduleSettings = every(time.Minute)
			return nil
		})
		time.Sleep(3 * time.Minute)
		require.Equal(t, int64(3), get(t, s).Counts.Run)
	})
}

// leftAfter is a store whose client leaves once a document is written.
type leftAfter struct {
	store.Store
	leave context.CancelFunc
}

func (l leftAfter) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	defer l.leave()
	return l.Store.PutDocument(ctx, token, doc, limits)
}

// heeding replaces no job once the context has ended.
type heeding struct{ *router.Router }

func (h heeding) Replace(ctx context.Context, ref job.Ref, replacement store.Replacement) (job.Job, error) {
	if ctx.Err() != nil {
		return job.Job{}, ctx.Err()
	}
	return h.Router.Replace(ctx, ref, replacement)
}

// A store that does not answer in a step is not an unreadable schedule.
func TestStep_IsRepeatedSoonWhenItsScheduleCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		var fail atomic.Bool
		start(t, failing{s, &fail}, new(registrar))
		set := every(10 * time.Second)
		set.CatchUp.Runs = store.CatchUpNone
		put(t, s, set)
		time.Sleep(15 * time.Second)
		fail.Store(true)
		time.Sleep(10 * time.Second)
		fail.Store(false)
		time.Sleep(16 * time.Second)
		require.Equal(t, int64(4), get(t, s).Counts.Run)
	})
}

// failing is a store whose documents cannot be read for a while.
type failing struct {
	store.Store
	fail *atomic.Bool
}

func (f failing) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	if f.fail.Load() {
		return nil, context.DeadlineExceeded
	}
	return f.Store.GetDocuments(ctx, keys)
}

func TestChange_HoldsFromTheNextTickOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		start(t, s, new(registrar))
		put(t, s, every(24*time.Hour))
		time.Sleep(time.Second)
		put(t, s, every(time.Minute))
		time.Sleep(3 * time.Minute)
		require.Equal(t, int64(3), get(t, s).Counts.Run, "a shorter period holds at once")
		put(t, s, every(time.Hour))
		time.Sleep(10 * time.Minute)
		require.Equal(t, int64(3), get(t, s).Counts.Run)
	})
}

// A caller may hide a schedule: a wrong revision must not show that it exists.
func TestChange_IsRefusedBeforeItsRevision(t *testing.T) {
	s := newModel()
	stored := put(t, s, every(time.Hour))
	made := service(s, new(registrar))
	hide := func(found *store.Schedule) error {
		require.Equal(t, stored.Revision, found.Revision)
		require.Equal(t, topic, found.Job.Topic)
		return store.ErrNotFound
	}
	for _, ifRevision := range []int64{0, stored.Revision, stored.Revision + 1, store.MustNotExist} {
		_, err := made.Put(t.Context(), ns, name, store.ChangeOptions{IfRevision: ifRevision}, hide)
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = made.Change(t.Context(), ns, name, store.ChangeOptions{IfRevision: ifRevision}, hide)
		require.ErrorIs(t, err, store.ErrNotFound)
		require.ErrorIs(t, made.Delete(t.Context(), ns, name, ifRevision, hide), store.ErrNotFound)
	}
	_, err := made.NewJob(t.Context(), ns, name, hide)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.PutDocument(t.Context(), store.NewToken(), store.Document{
		Key: store.DocumentKey{Kind: store.KindSchedule, Namespace: ns, Name: name}, Value: []byte("["),
		Revision: stored.Revision,
	}, policy.Limits{})
	require.NoError(t, err)
	_, err = made.Put(t.Context(), ns, name, store.ChangeOptions{}, func(found *store.Schedule) error {
		require.True(t, found.Unreadable)
		return store.ErrNotFound
	})
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestDelete_EndsTheTicksAndForgetsTheCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		start(t, s, new(registrar))
		put(t, s, every(time.Minute))
		time.Sleep(2*time.Minute + time.Second)
		require.NoError(t, service(s, nil).Delete(t.Context(), ns, name, 0, nil))
		require.ErrorIs(t, service(s, nil).Delete(t.Context(), ns, name, 0, nil), store.ErrNotFound)
		time.Sleep(5 * time.Minute)
		require.Len(t, ticksOf(t, s), 2)
		put(t, s, every(time.Minute))
		time.Sleep(time.Minute)
		require.Equal(t, store.ScheduleCounts{Run: 1}, get(t, s).Counts)
	})
}

func TestPut_StartsTheScheduleWhoseRequestIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		interrupted := storetest.Faulty(s, storetest.Nth("Replace", 1, storetest.Before))
		_, err := service(interrupted,
			new(registrar)).Put(t.Context(), ns, name, store.ChangeOptions{}, func(stored *store.Schedule) error {
			stored.ScheduleSettings = every(time.Minute)
			return nil
		})
		require.ErrorIs(t, err, store.ErrUnavailable)
		start(t, s, new(registrar))
		time.Sleep(2*time.Minute + time.Second)
		require.Equal(t, int64(2), get(t, s).Counts.Run)
	})
}

// lose ends the internal jobs, as the purge of a namespace does; forget: it removes them, too.
func lose(t testing.TB, s store.Store, forget bool) {
	t.Helper()
	r := router.New(s)
	page, err := r.List(t.Context(), store.Filter{Namespace: ns, Topic: job.ScheduleTopic, Limit: 10})
	require.NoError(t, err)
	for _, j := range page.Jobs {
		if j.State.Ended() {
			continue
		}
		_, err := r.Cancel(t.Context(), j.Ref(), store.Cancellation{})
		require.NoError(t, err)
		if forget {
			require.NoError(t, r.Purge(t.Context(), []store.Removal{{Ref: j.Ref()}})[0])
		}
	}
}

// A schedule whose internal job is lost goes on from a request, or from the next search.
func TestRestart_LetsTheTicksGoOn(t *testing.T) {
	for _, forget := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newModel()
			start(t, s, new(registrar))
			put(t, s, every(10*time.Minute))
			time.Sleep(20*time.Minute + time.Second)
			lose(t, s, forget)
			changed := time.Now().UnixMilli()
			require.Equal(t, changed+1, put(t, s, every(10*time.Minute)).Revision, "the change, and the new job")
			time.Sleep(10 * time.Minute)
			require.Equal(t, store.ScheduleCounts{Run: 1}, get(t, s).Counts)
			lose(t, s, forget)
			time.Sleep(75 * time.Minute)
			found := get(t, s)
			require.Positive(t, found.Counts.Run)
			require.Zero(t, found.Counts.Missed)
			require.NoError(t, service(s, nil).Delete(t.Context(), ns, name, 0, nil))
			time.Sleep(20 * time.Minute)
			require.Len(t, ticksOf(t, s), 3+int(found.Counts.Run))
		})
	}
}

// With the internal job its progress is lost: a backfill does not run again, and max_runs does not count from 0
// unasked.
func TestRestart_RunsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		began := time.Now()
		time.Sleep(time.Hour)
		start(t, s, new(registrar))
		set := every(time.Minute)
		set.MaxRuns = 10
		put(t, s, set)
		order := store.Backfill{
			After: began, Before: began.Add(time.Hour), Rate: policy.Rate{Starts: 100, Per: time.Second},
			CreatedAt: job.Millis(time.Now()), Total: 60,
		}
		change(t, s, func(stored *store.Schedule) { stored.Backfill = &order })
		time.Sleep(20 * time.Minute)
		require.Len(t, ticksOf(t, s), 70)
		lose(t, s, true)
		time.Sleep(61 * time.Minute)
		found := get(t, s)
		require.Zero(t, found.Counts)
		require.Zero(t, found.Backfill.Done)
		require.True(t, found.Paused)
		require.Contains(t, found.Pause.Note, "lost")
		require.False(t, found.Backfill.EndedAt.IsZero())
		require.Contains(t, found.Backfill.Failed, "lost")
		lose(t, s, true)
		order.CreatedAt = job.Millis(time.Now())
		change(t, s, func(stored *store.Schedule) { stored.Backfill = new(order) })
		change(t, s, func(stored *store.Schedule) { stored.Paused = false })
		time.Sleep(20 * time.Minute)
		require.Equal(t, store.ScheduleCounts{Run: 10}, get(t, s).Counts)
		require.Equal(t, int64(60), get(t, s).Backfill.Done, "what a request orders runs")
	})
}

// A schedule that cannot be restarted does not stop the search for others.
func TestRun_RestartsTheOthersAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		for _, n := range []string{"a", name} {
			_, err := service(s, new(registrar)).Put(t.Context(), ns, n, store.ChangeOptions{},
				func(stored *store.Schedule) error {
					stored.ScheduleSettings = every(time.Minute)
					return nil
				})
			require.NoError(t, err)
		}
		lose(t, s, true)
		start(t, unwritable{s}, new(registrar))
		time.Sleep(2*time.Minute + time.Second)
		require.Equal(t, int64(2), get(t, s).Counts.Run)
	})
}

// unwritable is a store that refuses the document of the schedule a.
type unwritable struct{ store.Store }

func (u unwritable) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	if doc.Key.Name == "a" {
		return doc, errors.New("redis: ERR")
	}
	return u.Store.PutDocument(ctx, token, doc, limits)
}

// A schedule whose progress this program cannot read is shown as unreadable, among others. It can be put anew, and
// deleted.
func TestList_ShowsSchedulesWhoseProgressIsUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		start(t, s, new(registrar))
		put(t, s, every(time.Hour))
		time.Sleep(time.Second) // its first step ends
		r := router.New(s)
		page, err := r.List(t.Context(), store.Filter{Namespace: ns, Topic: job.ScheduleTopic, Limit: 10})
		require.NoError(t, err)
		j, err := r.Get(t.Context(), page.Jobs[0].Ref())
		require.NoError(t, err)
		j.Body = []byte("[]")
		_, err = r.Replace(t.Context(), j.Ref(),
			store.Replacement{Kind: job.EventEdited, Fields: []string{"body"}, Spec: &j.Spec, IfVersion: j.Version})
		require.NoError(t, err)
		all, err := service(s, nil).List(t.Context(), ns, "", 10)
		require.NoError(t, err)
		require.True(t, all[0].Unreadable)
		require.True(t, get(t, s).Unreadable)
		require.False(t, put(t, s, every(time.Minute)).Unreadable)
		time.Sleep(time.Minute + time.Second)
		require.Equal(t, store.ScheduleCounts{Run: 1}, get(t, s).Counts)
		time.Sleep(time.Hour)
		page, err = r.List(t.Context(), store.Filter{
			Namespace: ns, Topic: job.ScheduleTopic,
			States: []job.State{job.Scheduled, job.Ready, job.Running}, Limit: 10,
		})
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1, "the old internal job ends")
		require.NoError(t, service(s, nil).Delete(t.Context(), ns, name, 0, nil))
	})
}

// A list reads the progress of each schedule from one shard.
func TestList_AsksOneShardForEachSchedule(t *testing.T) {
	s := newModel()
	put(t, s, every(time.Hour))
	var counted shardCalls
	all, err := service(counting{s, &counted}, nil).List(t.Context(), ns, "", 10)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Len(t, all[0].Next, 10)
	require.Equal(t, int64(1), counted.get.Load())
}

// A list asks each shard once how the jobs of the last ticks ended, and not about those of earlier ticks.
func TestList_SaysHowTheJobsOfLastTicksEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		start(t, s, new(registrar))
		for _, name := range []string{"a", "b", "c"} {
			_, err := service(s, new(registrar)).Put(t.Context(), ns, name, store.ChangeOptions{},
				func(stored *store.Schedule) error {
					stored.ScheduleSettings = every(time.Minute)
					return nil
				})
			require.NoError(t, err)
		}
		time.Sleep(time.Second) // the first steps end
		var counted shardCalls
		last := func() (states []job.State) {
			counted.known.Store(0)
			all, err := service(counting{s, &counted}, nil).List(t.Context(), ns, "", 10)
			require.NoError(t, err)
			require.LessOrEqual(t, counted.known.Load(), int64(len(s.Shards())))
			for _, found := range all {
				require.NotEmpty(t, found.Last)
				states = append(states, found.Last[len(found.Last)-1].JobState)
			}
			return states
		}
		time.Sleep(time.Minute)
		require.Equal(t, []job.State{"", "", ""}, last(), "they have not ended")
		ended := finishSome(t, s, dead, 1)
		ended = append(ended, finishSome(t, s, delivered, 1)...)
		var want []job.State
		for _, name := range []string{"a", "b", "c"} {
			states := map[string]job.State{ended[0].ID: job.Dead, ended[1].ID: job.Delivered}
			want = append(want, states[job.TickID(name, time.Now().Truncate(time.Minute))])
		}
		require.Equal(t, want, last())
		require.Equal(t, 1, finish(t, s, dead))
		time.Sleep(time.Minute)
		require.Equal(t, []job.State{"", "", ""}, last(), "those of the next ticks")
	})
}

// shardCalls counts calls of shards.
type shardCalls struct{ get, known atomic.Int64 }

// counting counts reads of jobs.
type counting struct {
	store.Store
	calls *shardCalls
}

func (c counting) Shards() []store.Shard {
	return storetest.WrapShards(c.Store,
		func(_ int, next store.Shard) store.Shard { return countingShard{next, c.calls} })
}

type countingShard struct {
	store.Shard
	calls *shardCalls
}

func (s countingShard) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	s.calls.get.Add(1)
	return s.Shard.Get(ctx, ref)
}

func (s countingShard) Known(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error) {
	s.calls.known.Add(1)
	return s.Shard.Known(ctx, refs)
}

// The same name in other namespaces has other delays, so that schedules of all namespaces are spread.
func TestJitter_DependsOnTheNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		set := every(time.Hour)
		set.Jitter = 50 * time.Minute
		other, err := service(s, new(registrar)).Put(t.Context(), "other", name, store.ChangeOptions{},
			func(stored *store.Schedule) error {
				stored.ScheduleSettings = set
				return nil
			})
		require.NoError(t, err)
		require.NotEqual(t, put(t, s, set).Delay, other.Delay)
	})
}

func TestStep_RecordsTicksWhoseJobsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		r := new(registrar)
		start(t, s, r)
		put(t, s, every(time.Minute))
		time.Sleep(time.Minute + time.Second)
		r.fail(&job.UndeclaredTopicError{Topic: topic})
		time.Sleep(time.Minute)
		found := get(t, s)
		require.Equal(t, store.ScheduleCounts{Run: 1, Failed: 1}, found.Counts)
		require.Contains(t, found.Last[1].Reason, topic)
		r.fail(&job.QuotaError{Quota: "rate", Limit: "1/s", RetryAfter: 20 * time.Second})
		time.Sleep(time.Minute + 10*time.Second)
		require.Equal(t, store.ScheduleCounts{Run: 1, Failed: 1}, get(t, s).Counts, "a tick waits for its quota")
		r.fail(nil)
		time.Sleep(30 * time.Second)
		require.Equal(t, store.ScheduleCounts{Run: 2, Failed: 1}, get(t, s).Counts)
	})
}

// What is not the job's fault costs no tick and ends no backfill: the step is repeated.
func TestStep_IsRepeatedAfterErrorsThatRefuseNoJob(t *testing.T) {
	for _, err := range []error{
		context.DeadlineExceeded, context.Canceled, store.ErrContended, errors.New("redis: ERR"), store.ErrUnavailable,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newModel()
			r := new(registrar)
			began := time.Now()
			time.Sleep(time.Hour)
			start(t, s, r)
			put(t, s, every(time.Minute))
			time.Sleep(time.Second)
			r.fail(err)
			order := store.Backfill{
				After: began, Before: time.Now().Truncate(time.Minute),
				Rate: policy.Rate{Starts: 100, Per: time.Second}, CreatedAt: time.Now(),
			}
			change(t, s, func(stored *store.Schedule) { stored.Backfill = &order })
			time.Sleep(time.Minute)
			r.fail(nil)
			time.Sleep(50 * time.Second)
			found := get(t, s)
			require.Equal(t, store.ScheduleCounts{Run: 1}, found.Counts)
			require.Empty(t, found.Backfill.Failed)
			require.Equal(t, int64(60), found.Backfill.Done)
		})
	}
}

func TestBackfill_RunsPastTicksOnceAtItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		began := time.Now()
		time.Sleep(2 * time.Hour)
		start(t, s, new(registrar))
		put(t, s, every(time.Minute))
		time.Sleep(10 * time.Minute)
		order := store.Backfill{
			After: began, Before: time.Now().Truncate(time.Minute).Add(time.Minute),
			Rate: policy.Rate{Starts: 1, Per: 2 * time.Second}, CreatedAt: job.Millis(time.Now()), Total: 131,
		}
		change(t, s, func(stored *store.Schedule) { stored.Backfill = &order })
		time.Sleep(30 * time.Second)
		require.InDelta(t, 15, get(t, s).Backfill.Done, 1)
		time.Sleep(5 * time.Minute)
		found := get(t, s)
		require.False(t, found.Backfill.EndedAt.IsZero())
		require.Equal(t, int64(131), found.Backfill.Done)
		until := order.Before.Add(5 * time.Minute)
		require.Equal(t, between(began.Add(-time.Minute), until, time.Minute)[0], ticksOf(t, s)[0], "from after on")
		require.Len(t, ticksOf(t, s), 131+5, "those that had run did not run again")
	})
}

// A backfill runs all of its ticks: also after the end of the schedule, and those that the schedule has yet to pass.
func TestBackfill_RunsTicksThatTheScheduleHasNotPassed(t *testing.T) {
	for _, maxRuns := range []int64{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			s := newModel()
			start(t, s, new(registrar))
			set := every(time.Minute)
			set.MaxRuns = maxRuns
			if maxRuns == 0 {
				set.Jitter = 20 * time.Minute
			}
			require.Greater(t, put(t, s, set).Delay+time.Duration(maxRuns)*time.Hour, time.Minute)
			time.Sleep(30 * time.Minute)
			now := time.Now().Truncate(time.Minute)
			order := store.Backfill{
				After: now.Add(-time.Hour), Before: now, Rate: policy.Rate{Starts: 100, Per: time.Second},
				CreatedAt: job.Millis(time.Now()), Total: 60,
			}
			change(t, s, func(stored *store.Schedule) { stored.Backfill = &order })
			time.Sleep(25 * time.Minute)
			found := get(t, s).Backfill
			require.Equal(t, int64(60), found.Done)
			require.False(t, found.EndedAt.IsZero())
		})
	}
}

func TestPut_RefusesMoreSchedulesThanFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		jobs := make([]store.NewJob, store.MaxSchedules)
		for i := range jobs {
			n := job.New{Spec: job.Spec{ID: fmt.Sprint("x",
				i), Queue: job.Queue{Namespace: ns, Topic: job.ScheduleTopic, Lane: "x"}}, Delay: time.Hour}
			jobs[i] = store.NewJob{New: n, Fingerprint: codec.Fingerprint(&n)}
		}
		for _, result := range router.New(s).Insert(t.Context(), jobs) {
			require.NoError(t, result.Err)
		}
		_, err := service(s, new(registrar)).Put(t.Context(), ns, name, store.ChangeOptions{},
			func(*store.Schedule) error { return nil })
		require.ErrorContains(t, err, "schedules")
		require.ErrorContains(t, err, "1000")
	})
}
