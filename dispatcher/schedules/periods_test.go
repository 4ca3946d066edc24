package schedules_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// edit is a change of a schedule at a time.
type edit struct {
	at time.Duration
	do func(*store.Schedule)
}

func pause(s *store.Schedule)  { s.Paused = true }
func resume(s *store.Schedule) { s.Paused = false }

func shiftTo(d time.Duration) func(*store.Schedule) {
	return func(s *store.Schedule) { s.Every = d }
}

// sameTicks changes what decides about ticks, and not the ticks.
func sameTicks(s *store.Schedule) { s.StartsAt = s.StartsAt.Add(time.Second) }

// delayTo sets a jitter that delays the jobs of the schedule by a duration, and up to half a second more.
func delayTo(d time.Duration) func(*store.Schedule) {
	spec := schedule.Spec{Every: time.Second, Jitter: d}
	for ; ; spec.Jitter += time.Millisecond {
		if ticks, err := schedule.Parse(spec); err != nil {
			panic(err)
		} else if delay := ticks.Jitter(ns + "/" + name); delay >= d && delay < d+time.Second/2 {
			return func(s *store.Schedule) { s.Jitter = spec.Jitter }
		}
	}
}

func noDelay(s *store.Schedule) { s.Jitter = 0 }

func both(a, b func(*store.Schedule)) func(*store.Schedule) {
	return func(s *store.Schedule) { a(s); b(s) }
}

// unseen makes changes while no process runs: for an outage from one second after a tick on. It returns those
// that passed later by outcome, in seconds after that tick.
func unseen(
	t *testing.T, set store.ScheduleSettings, prepare func(*store.Schedule), outage time.Duration, edits ...edit,
) map[store.TickOutcome][]int {
	t.Helper()
	s := newModel()
	stop := start(t, s, new(registrar))
	set.StartsAt = time.Now().Add(-time.Hour)
	put(t, s, set)
	change(t, s, prepare)
	began := time.Now().Truncate(time.Minute).Add(time.Minute)
	time.Sleep(time.Until(began.Add(time.Second)))
	before, passed := get(t, s), began
	if n := len(before.Last); n > 0 {
		passed = before.Last[n-1].At
	}
	stop()
	synctest.Wait()
	for _, e := range edits {
		time.Sleep(time.Until(began.Add(e.at)))
		change(t, s, e.do)
	}
	time.Sleep(time.Until(began.Add(outage)))
	start(t, s, new(registrar))
	time.Sleep(2 * time.Second)
	found, outcomes := get(t, s), make(map[store.TickOutcome][]int)
	for _, tick := range found.Last {
		if tick.At.After(passed) {
			outcomes[tick.Outcome] = append(outcomes[tick.Outcome], int(tick.At.Sub(began)/time.Second))
		}
	}
	require.Len(t, outcomes[store.TickRun], int(found.Counts.Run-before.Counts.Run), "each is counted")
	require.Len(t, outcomes[store.TickMissed], int(found.Counts.Missed-before.Counts.Missed), "each is counted")
	var ran []int
	for _, tick := range ticksOf(t, s) {
		if tick.After(passed) {
			ran = append(ran, int(tick.Sub(began)/time.Second))
		}
	}
	require.Equal(t, outcomes[store.TickRun], ran, "each has its job")
	return outcomes
}

// The time of a change decides about each tick, whenever a process sees the change.
func TestPeriods_DecideAboutTicksThatNoProcessHasSeen(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for what, c := range map[string]struct {
		prepare func(*store.Schedule)
		edits   []edit
		ran     []int
	}{
		"a pause":      {edits: []edit{{25 * s, pause}}, ran: []int{10, 20}},
		"a resumption": {prepare: pause, edits: []edit{{25 * s, resume}}, ran: []int{30, 40, 50}},
		"both":         {edits: []edit{{15 * s, pause}, {35 * s, resume}}, ran: []int{10, 40, 50}},
		"both, twice": {
			edits: []edit{{15 * s, pause}, {25 * s, resume}, {35 * s, pause}, {45 * s, resume}},
			ran:   []int{10, 30, 50},
		},
		"a new interval": {edits: []edit{{25 * s, shiftTo(15 * s)}}, ran: []int{10, 20, 30, 45}},
		"intervals": {
			edits: []edit{{12 * s, shiftTo(4 * s)}, {21 * s, shiftTo(30 * s)}},
			ran:   []int{10, 16, 20, 30},
		},
		"one of a pause": {
			edits: []edit{{15 * s, pause}, {25 * s, shiftTo(15 * s)}, {35 * s, resume}},
			ran:   []int{10, 45},
		},
		"before a tick":      {edits: []edit{{20*s - ms, sameTicks}}, ran: []int{10, 20, 30, 40, 50}},
		"at a tick":          {edits: []edit{{20 * s, sameTicks}}, ran: []int{10, 20, 30, 40, 50}},
		"after a tick":       {edits: []edit{{20*s + ms, sameTicks}}, ran: []int{10, 20, 30, 40, 50}},
		"a pause at a tick":  {edits: []edit{{20 * s, pause}}, ran: []int{10, 20}},
		"a resumption at it": {prepare: pause, edits: []edit{{20 * s, resume}}, ran: []int{30, 40, 50}},
		"an earlier end": {
			edits: []edit{{35 * s, func(s *store.Schedule) { s.EndsAt = s.StartsAt.Add(61 * time.Minute) }}},
			ran:   []int{10, 20, 30},
		},
		"a later end": {
			prepare: func(s *store.Schedule) { s.EndsAt = s.StartsAt.Add(time.Hour + 75*time.Second) },
			edits:   []edit{{35 * s, func(s *store.Schedule) { s.EndsAt = time.Time{} }}},
			ran:     []int{10, 40, 50},
		},
		"more runs": {
			prepare: func(s *store.Schedule) { s.MaxRuns = 7 },
			edits:   []edit{{35 * s, func(s *store.Schedule) { s.MaxRuns = 8 }}},
			ran:     []int{10, 40},
		},
		"fewer runs": {
			prepare: func(s *store.Schedule) { s.MaxRuns = 100 },
			edits:   []edit{{35 * s, func(s *store.Schedule) { s.MaxRuns = 2 }}},
			ran:     []int{10, 20, 30},
		},
		"a longer jitter":          {edits: []edit{{25 * s, delayTo(20 * s)}}, ran: []int{10, 20, 30}},
		"a longer one and a pause": {edits: []edit{{25 * s, delayTo(50 * s)}, {30 * s, pause}}, ran: []int{10, 20}},
		"a longer one for a while": {
			prepare: pause, edits: []edit{{12 * s, both(resume, delayTo(30*s))}, {25 * s, noDelay}},
			ran: []int{20, 30, 40, 50},
		},
		"a shorter jitter": {
			prepare: delayTo(25 * s), edits: []edit{{32 * s, noDelay}},
			ran: []int{-20, -10, 0, 10, 20, 30, 40, 50},
		},
		"a shorter one and a pause": {
			prepare: delayTo(25 * s), edits: []edit{{32 * s, noDelay}, {35 * s, pause}},
			ran: []int{-20, -10, 0, 10, 20, 30},
		},
		"a shorter one after a pause": {
			prepare: delayTo(25 * s), edits: []edit{{12 * s, pause}, {32 * s, both(resume, noDelay)}},
			ran: []int{-20, 10, 20, 30, 40, 50},
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.prepare == nil {
					c.prepare = func(*store.Schedule) {}
				}
				set := every(10 * s)
				set.CatchUp.Runs = store.CatchUpNone // none of these is late
				require.Equal(t, map[store.TickOutcome][]int{store.TickRun: c.ran},
					unseen(t, set, c.prepare, 55*s, c.edits...))
			})
		})
	}
}

// What is late is caught up over all changes, and not during a pause.
func TestPeriods_CatchUpOverTheChanges(t *testing.T) {
	const minute = time.Minute
	delayed := []edit{{150 * time.Second, delayTo(2 * minute)}}
	edits := []edit{{150 * time.Second, pause}, {210 * time.Second, resume}, {270 * time.Second, shiftTo(2 * minute)}}
	for _, c := range []struct {
		runs        store.CatchUpRuns
		edits       []edit
		ran, missed []int
	}{
		{store.CatchUpAll, edits, []int{60, 120, 240, 300, 420}, nil},
		{store.CatchUpLast, edits, []int{420}, []int{60, 120, 240, 300}},
		{store.CatchUpNone, edits, nil, []int{60, 120, 240, 300, 420}},
		{store.CatchUpAll, edits[:1], nil, []int{60, 120}},
		{store.CatchUpLast, []edit{{539 * time.Second, pause}}, []int{480}, []int{60, 120, 180, 240, 300, 360, 420}},
		{store.CatchUpAll, delayed, []int{60, 120, 180, 240, 300, 360}, nil},
		{store.CatchUpLast, delayed, []int{360}, []int{60, 120, 180, 240, 300}},
	} {
		synctest.Test(t, func(t *testing.T) {
			set := every(minute)
			set.CatchUp.Runs = c.runs
			found := unseen(t, set, func(*store.Schedule) {}, 9*minute-5*time.Second, c.edits...)
			require.Equal(t, c.ran, found[store.TickRun], "%+v", c)
			require.Equal(t, c.missed, found[store.TickMissed], "%+v", c)
		})
	}
}

// A change during a catch-up, which takes half a minute, leaves the ticks that became due meanwhile.
func TestPeriods_EndOnceTheirTicksHavePassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		set := every(time.Second)
		set.CatchUp.Runs = store.CatchUpAll
		created := time.Now()
		put(t, s, set)
		time.Sleep(5 * time.Minute)
		start(t, s, new(registrar))
		time.Sleep(10*time.Second + time.Millisecond)
		changed := time.Now()
		change(t, s, shiftTo(10*time.Second))
		time.Sleep(2 * time.Minute)
		want := append(between(created, changed, time.Second), between(changed, time.Now(), 10*time.Second)...)
		require.Equal(t, want, ticksOf(t, s))
		require.Equal(t, store.ScheduleCounts{Run: int64(len(want))}, get(t, s).Counts)
	})
}

// A tick that a shorter jitter makes due hours after its time is not late.
func TestPeriods_MakeTicksThatAShorterJitterFindsOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		start(t, s, new(registrar))
		set := every(24 * time.Hour)
		set.CatchUp.Runs = store.CatchUpNone
		put(t, s, set)
		change(t, s, delayTo(6*time.Hour))
		time.Sleep(26 * time.Hour)
		require.Zero(t, get(t, s).Counts)
		change(t, s, noDelay)
		time.Sleep(time.Second)
		require.Equal(t, store.ScheduleCounts{Run: 1}, get(t, s).Counts)
	})
}

// Changes at any time, also within milliseconds of ticks, while the processes die again and again in their calls.
func TestPeriods_MakeEachTickOnceWhateverDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		random := rand.New(rand.NewPCG(2, 2))
		deaths := rand.New(rand.NewPCG(3, 3)) // guarded by mu
		var mu sync.Mutex
		var stops []func()
		live := func() {
			wrapped, _ := mortal(s, deaths, 0.03, &mu)
			stops = append(stops, start(t, wrapped, new(registrar)))
		}
		set := every(2 * time.Second)
		set.CatchUp.Runs = store.CatchUpAll // some die several times in a tick
		from, last := put(t, s, set).Revision, set.Every
		var want []time.Time
		for range testkit.Of(150, 1000) {
			if random.IntN(3) == 0 {
				live()
			}
			if len(stops) > 3 {
				stops[0]()
				stops = stops[1:]
			}
			near := time.Now().Add(time.Duration(random.IntN(12)) * time.Second).Truncate(time.Second)
			time.Sleep(time.Until(near.Add(time.Duration(random.IntN(5)) * time.Millisecond)))
			next := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}[random.IntN(4)] // 0: a pause
			_, err := service(s, new(registrar)).Change(t.Context(), ns, name, store.ChangeOptions{},
				func(stored *store.Schedule) error {
					stored.Paused = next == 0
					stored.Every = max(next, time.Second)
					stored.StartsAt = time.UnixMilli(random.Int64N(1e9))
					return nil
				})
			_, held := errors.AsType[*store.UnavailableError](err) // by the lease of a dead one
			require.True(t, err == nil || held, "%v", err)
			until := get(t, s).Revision
			if last > 0 {
				want = append(want, between(time.UnixMilli(from), time.UnixMilli(until), last)...)
			}
			from, last = until, next
		}
		for _, stop := range stops {
			stop()
		}
		start(t, s, new(registrar))
		time.Sleep(time.Minute) // the leases of the dead are over
		change(t, s, pause)
		if last > 0 {
			want = append(want, between(time.UnixMilli(from), time.UnixMilli(get(t, s).Revision), last)...)
		}
		time.Sleep(time.Minute)
		found, ran := get(t, s), ticksOf(t, s)
		require.Subset(t, want, ran)
		require.Equal(t, store.ScheduleCounts{Run: int64(len(ran)), Missed: int64(len(want) - len(ran))}, found.Counts)
		require.Less(t, found.Counts.Missed, int64(len(want)/2), "those that a pause found late")
	})
}

// Revisions are ahead of a clock that was set back. A change holds at once all the same.
func TestPeriods_HoldAtOnceAfterTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{Shards: 3})
		start(t, m, new(registrar))
		m.Step(3 * time.Hour)
		_, err := m.PutDocument(t.Context(), store.NewToken(), store.Document{
			Key: store.DocumentKey{Kind: store.KindSchedule, Namespace: ns, Name: "other"}, Value: []byte("{}"),
		}, policy.Limits{})
		require.NoError(t, err)
		m.Step(-3 * time.Hour)
		put(t, m, every(time.Minute))
		time.Sleep(10*time.Minute + time.Second)
		require.Equal(t, int64(10), get(t, m).Counts.Run)
		change(t, m, pause)
		time.Sleep(10 * time.Minute)
		require.Equal(t, int64(10), get(t, m).Counts.Run)
		change(t, m, resume)
		time.Sleep(10 * time.Minute)
		require.Equal(t, store.ScheduleCounts{Run: 20}, get(t, m).Counts)
	})
}

func TestPeriods_AreBoundedWhileNoProcessSeesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModel()
		put(t, s, every(time.Hour))
		flip := func() error {
			_, err := service(s, new(registrar)).Change(t.Context(), ns, name, store.ChangeOptions{},
				func(stored *store.Schedule) error {
					stored.Paused = !stored.Paused
					return nil
				})
			return err
		}
		for range 100 {
			require.NoError(t, flip())
		}
		require.ErrorContains(t, flip(), "100 changes of the schedule's ticks that still have to be followed, and no "+
			"more are possible: start a process with the role worker; if one runs, due ticks wait for a quota")
		change(t, s, func(stored *store.Schedule) { stored.Note = "others are made" })
		start(t, s, new(registrar))
		time.Sleep(time.Second)
		for range 300 {
			require.NoError(t, flip(), "steps see each")
			time.Sleep(time.Millisecond)
		}
	})
}
