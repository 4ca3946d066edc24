package redis

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// carriedQueues is how many queues a round of the carrier processes by default.
const carriedQueues = 128

// A fakeClock is a miniredis whose clock a test moves, and the monotonic clock of processes beside it.
type fakeClock struct {
	server *miniredis.Miniredis
	mu     sync.Mutex
	wall   time.Time
	passed time.Duration
}

func newClock(t *testing.T) *fakeClock {
	c := &fakeClock{server: miniredis.RunT(t), wall: time.Now().UTC().Truncate(time.Millisecond)}
	c.server.SetTime(c.wall)
	return c
}

func (c *fakeClock) options() Options {
	return Options{URL: "redis://" + c.server.Addr(), Logger: quiet, elapsed: c.elapsed}
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

func (c *fakeClock) elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passed
}

// pass advances the server's clock and the monotonic clock.
func (c *fakeClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
	c.wall = c.wall.Add(d)
	c.server.SetTime(c.wall)
	c.server.FastForward(d)
}

// step sets the server's clock, and leaves the monotonic clock.
func (c *fakeClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
	c.server.SetTime(c.wall)
}

// requireStepBackDetected advances the monotonic clock alone, so that a real server's clock seems to be set back.
func requireStepBackDetected(t *testing.T, o Options) {
	t.Helper()
	clock := fakeClock{}
	start := time.Now()
	o.elapsed = func() time.Duration { return time.Since(start) + clock.elapsed() }
	s := open(t, o)
	watchKeys(t, s)
	insert(t, s, entry("stepped"))
	carryAll(t, s)
	clock.mu.Lock()
	clock.passed = time.Hour
	clock.mu.Unlock()
	_, step := carryAll(t, s)
	require.InDelta(t, -time.Hour, step, float64(time.Minute))
}

// carryAll calls Carry until nothing is due at once.
func carryAll(t *testing.T, s *Store) (rounds int, step time.Duration) {
	t.Helper()
	for {
		carried, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
		rounds++
		step += carried.ClockStep
		if carried.Next != 0 {
			return rounds, step
		}
	}
}

// claimInLane inserts a job into a lane and claims it, with a lease of 15 seconds.
func claimInLane(t *testing.T, s *Store, lane string) store.ClaimedJob {
	t.Helper()
	e := entry("job-" + lane)
	e.Lane = lane
	insert(t, s, e)
	request := wants(1)
	request.Queues[0].Queue = e.Queue
	claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)
	return claimed.Jobs[0]
}

func TestClockStep_IsTakenOverByTheNextCarrier(t *testing.T) {
	clock := newClock(t)
	first, second := open(t, clock.options()), open(t, clock.options())
	carryAll(t, first)
	insert(t, first, entry("a"), entry("b"))
	carryAll(t, first) // writes a wake-up
	claimInLane(t, first, "held")
	clock.pass(time.Second)
	carryAll(t, first)
	clock.pass(time.Second / 2) // the first carrier is dead
	clock.step(-12 * time.Second)

	_, step := carryAll(t, second)
	require.InDelta(t, -11.5*float64(time.Second), float64(step), float64(10*time.Millisecond),
		"as far as the noted reading tells")
	clock.pass(time.Second)
	notified, err := second.Shards()[0].Wait(t.Context(),
		store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Millisecond})
	require.NoError(t, err)
	require.NotEmpty(t, notified)
	carryAll(t, second)
	clock.pass(14 * time.Second)
	carried, err := second.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, carried.ExpiredLeases, "its lease ends when it would have ended")
	_, step = carryAll(t, first)
	require.Zero(t, step, "another process has carried the shard since")
}

func TestClockStep_OfManyQueuesIsRescoredInPortions(t *testing.T) {
	clock := newClock(t)
	s := open(t, clock.options())
	const lanes = 300
	entries := make([]store.NewJob, lanes)
	request := store.ClaimRequest{Max: lanes, MaxBytes: 1 << 20, Margin: 5 * time.Second}
	for i := range entries {
		entries[i] = entry(fmt.Sprint("job-", i))
		entries[i].Lane = fmt.Sprint("lane-", i)
		wanted := store.QueueClaim{Queue: entries[i].Queue, Max: 1, Timeout: 10 * time.Second}
		request.Queues = append(request.Queues, wanted)
	}
	insert(t, s, entries...)
	claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, lanes)
	carryAll(t, s)
	clock.step(-time.Hour)
	rounds, _ := carryAll(t, s)
	require.Equal(t, 1+(lanes+carriedQueues-1)/carriedQueues, rounds)

	// Another process continues where the first one stopped. Nothing is moved twice.
	clock.step(time.Hour)
	for range 2 {
		_, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
	}
	other := open(t, clock.options())
	carryAll(t, other)
	clock.pass(15*time.Second - 10*time.Millisecond)
	for range 5 {
		carried, err := other.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
		require.Zero(t, carried.ExpiredLeases)
	}
	clock.pass(20 * time.Millisecond)
	expired := 0
	for range lanes/carriedQueues + 1 {
		carried, err := other.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
		expired += carried.ExpiredLeases
	}
	require.Equal(t, lanes, expired)
	keys := []string{s.shards[0].Keys.StaleAgenda, s.shards[0].Keys.StaleThrottles}
	require.Zero(t, s.Client.Exists(t.Context(), keys...).Val(), "nothing is left aside")
}

func TestLead_OfADeadHolderEndsThoughTheClockWasSetBack(t *testing.T) {
	clock := newClock(t)
	dead, other := open(t, clock.options()), open(t, clock.options())
	_, err := dead.Shards()[0].Lead(t.Context())
	require.NoError(t, err)
	clock.server.SetTTL(dead.shards[0].Keys.Carrier, 10*time.Minute) // what a step does to it
	took := time.Duration(0)
	for ; took < 10*time.Second; took += time.Second {
		if _, err = other.Shards()[0].Lead(t.Context()); err == nil {
			break
		}
		require.ErrorIs(t, err, store.ErrNotLeader)
		clock.pass(time.Second)
	}
	require.Equal(t, store.LeadershipTTL, took)
	_, err = dead.Shards()[0].Lead(t.Context())
	require.ErrorIs(t, err, store.ErrNotLeader)
}

func TestLead_OfALivingHolderStaysItsOwnWhenTheClockIsSetBack(t *testing.T) {
	clock := newClock(t)
	holder, other := open(t, clock.options()), open(t, clock.options())
	lead, err := holder.Shards()[0].Lead(t.Context())
	require.NoError(t, err)
	for range 3 {
		clock.server.SetTTL(holder.shards[0].Keys.Carrier, 10*time.Minute)
		for range 5 {
			_, err = other.Shards()[0].Lead(t.Context())
			require.ErrorIs(t, err, store.ErrNotLeader)
			clock.pass(time.Second)
			require.NoError(t, lead.Extend(t.Context()))
		}
	}
	require.NoError(t, lead.Release(t.Context()))
	_, err = other.Shards()[0].Lead(t.Context())
	require.NoError(t, err)
}

func TestList_ShowsReadyJobsThatAStepBackMadeScheduled(t *testing.T) {
	clock := newClock(t)
	s := open(t, clock.options())
	insert(t, s, entry("a"))
	list := func(state job.State) int {
		page, err := s.Shards()[0].List(t.Context(),
			store.Filter{Namespace: lane.Namespace, Topic: lane.Topic, States: []job.State{state}, Limit: 9})
		require.NoError(t, err)
		return len(page.Jobs)
	}
	carryAll(t, s)
	require.Equal(t, 1, list(job.Ready))
	require.Zero(t, list(job.Scheduled))
	clock.step(-time.Minute)
	carryAll(t, s)
	require.Equal(t, 1, list(job.Ready)+list(job.Scheduled))
	clock.pass(time.Minute)
	require.Equal(t, 1, list(job.Ready))
	require.Zero(t, list(job.Scheduled))
	require.Len(t, claimAll(t, s, 1).Jobs, 1)
}

func TestRepair_WaitsUntilAllIsRescored(t *testing.T) {
	clock := newClock(t)
	s := open(t, clock.options())
	insert(t, s, entry("a"))
	carryAll(t, s)
	repair := func() time.Duration {
		result, err := s.Shards()[0].Repair(t.Context())
		require.NoError(t, err)
		return result.Wait
	}
	clock.step(time.Hour)
	_, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
	require.NoError(t, err)
	require.True(t, s.shards[0].Rescoring.Load())
	require.Equal(t, 100*time.Millisecond, repair())
	carryAll(t, s)
	require.NotEqual(t, 100*time.Millisecond, repair())
}

func TestTotals_CountLanesThatAreStillToBeRescored(t *testing.T) {
	clock := newClock(t)
	s := open(t, clock.options())
	deliverWith(t, s, "held", store.LaneChange{Cooldown: time.Hour}) // so what is due stays in due
	a, b := entry("a"), entry("b")
	a.Delay, b.Delay = time.Second, time.Hour
	insert(t, s, a)
	clock.pass(time.Second)
	carryAll(t, s)
	totals := func() store.TopicStats {
		total, err := s.Shards()[0].Totals(t.Context(), lane.Namespace)
		require.NoError(t, err)
		return total
	}
	before := totals()
	require.EqualValues(t, 1, before.Ready)
	clock.step(time.Minute)
	_, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
	require.NoError(t, err)
	require.True(t, s.shards[0].Rescoring.Load())
	require.Equal(t, before, totals())
	insert(t, s, b) // now the lane is on both agendas
	require.EqualValues(t, 2, s.Client.Exists(t.Context(), s.shards[0].Keys.Agenda, s.shards[0].Keys.StaleAgenda).Val())
	require.Equal(t, before.Ready, totals().Ready)
}
