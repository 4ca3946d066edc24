package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// clockSteps are steps of the clock in both directions, shorter and longer than the durations in the tests.
var clockSteps = testkit.Of(
	[]time.Duration{-5 * time.Second, -2 * time.Hour, 10 * time.Minute},
	[]time.Duration{-5 * time.Second, -10 * time.Minute, -2 * time.Hour, 5 * time.Second, 10 * time.Minute},
)

// clockTolerance is the allowed error of moved instants.
const clockTolerance = 5 * time.Millisecond

// stepClock sets the clock between two rounds, and carries until everything is rescored.
func (s *suite) stepClock(d time.Duration) {
	s.Helper()
	for shard := range s.Store.Shards() {
		s.carryShard(shard)
	}
	s.Step(d)
	for shard := range s.Store.Shards() {
		require.InDelta(s, d, s.carryShard(shard), float64(clockTolerance), "reported step")
		require.Zero(s, s.carryShard(shard), "a step is reported once")
	}
}

// carryShard carries until there is nothing to do at once, and returns the step that was found.
func (s *suite) carryShard(shard int) (step time.Duration) {
	s.Helper()
	for range 10 {
		carried, err := s.Store.Shards()[shard].Carry(s.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(s, err)
		step += carried.ClockStep
		if carried.Next != 0 {
			return step
		}
	}
	require.FailNow(s, "Carry kept returning Next 0")
	return 0
}

// withSteps runs a case once for every step, each on another engine.
func withSteps(test func(s *suite, d time.Duration)) func(s *suite) {
	return func(s *suite) {
		if s.Step == nil {
			return
		}
		for _, d := range clockSteps {
			s.Run(d.String(), func(t *testing.T) {
				one := newSuite(t, s.open)
				test(one, d)
				one.checkInvariants()
			})
		}
	}
}

// requireFreeIn advances the clock to the end of the test queue's throttle, which must be in that time.
func (s *suite) requireFreeIn(in time.Duration, what string) {
	s.Helper()
	next := s.carry(store.CarryOptions{}).Next
	require.InDelta(s, in, next, float64(clockTolerance), what)
	s.requireNotifiedAt(s.now().Add(next), what)
}

var clockCases = []testCase{
	{"a busy lane keeps notifying, and new jobs come due on time", withSteps(func(s *suite, d time.Duration) {
		s.insertNew(s.entry("a"), s.entry("b"))
		s.waitNotified(s.queue)
		s.stepClock(d)
		s.insertNew(s.entry("c", delayed(500*time.Millisecond)))
		s.drainWakeups()
		s.Advance(store.RenotifyAfter)
		s.carry(store.CarryOptions{})
		require.Contains(s, s.wait(time.Millisecond), s.queue)
		require.Equal(s, job.Ready, s.get("c").State)
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 3)
	})},
	{"a resumed topic notifies at once", withSteps(func(s *suite, d time.Duration) {
		s.insertNew(s.entry("a"), s.entry("b"))
		s.waitNotified(s.queue)
		s.put(policy.Topic{Paused: true})
		s.carryShard(s.shardNumber)
		s.stepClock(d)
		s.drainWakeups()
		s.put(policy.Topic{})
		s.carryShard(s.shardNumber)
		require.Contains(s, s.wait(time.Millisecond), s.queue)
	})},
	{"leases keep their duration", withSteps(func(s *suite, d time.Duration) {
		const lease = 40 * time.Second
		s.insertNew(s.entry("old"), s.entry("new"))
		r := claimFor(lease, s.queue)
		r.Max = 1
		require.Len(s, s.claim(r).Jobs, 1)
		s.Advance(lease / 4)
		s.stepClock(d)
		require.Len(s, s.claim(r).Jobs, 1)
		s.Advance(lease*3/4 - time.Millisecond)
		require.Zero(s, s.carry(store.CarryOptions{}).ExpiredLeases)
		s.Advance(2 * clockTolerance)
		require.Equal(s, 1, s.carry(store.CarryOptions{}).ExpiredLeases)
		require.InDelta(s, lease, s.get("old").History[0].Duration, float64(2*clockTolerance))
		s.Advance(lease/4 - 3*clockTolerance)
		require.Zero(s, s.carry(store.CarryOptions{}).ExpiredLeases, "a claim after the step")
		s.Advance(3 * clockTolerance)
		require.Equal(s, 1, s.carry(store.CarryOptions{}).ExpiredLeases)
	})},
	{"cooldowns keep their duration, also in an empty lane", withSteps(func(s *suite, d time.Duration) {
		s.changeLane(cooldown(time.Minute))
		s.Advance(time.Minute / 4)
		s.stepClock(d)
		s.insertNew(s.entry("a"))
		s.requireFreeIn(time.Minute*3/4, "a cooldown")
		s.claimAll("a")
	})},
	{"a cooldown set after the step has its full duration", withSteps(func(s *suite, d time.Duration) {
		s.carryShard(s.shardNumber)
		s.Step(d)
		s.changeLane(cooldown(time.Minute))
		s.insertNew(s.entry("a"))
		s.carryShard(s.shardNumber)
		s.requireFreeIn(time.Minute, "a cooldown")
	})},
	{"a probe is allowed on time", withSteps(func(s *suite, d time.Duration) {
		s.changeLane(openBreaker(time.Minute))
		s.insertNew(s.entry("a"), s.entry("b"))
		s.Advance(time.Minute / 4)
		s.stepClock(d)
		s.requireFreeIn(time.Minute*3/4, "a breaker")
		s.probe(claimOf(s.queue))
		require.True(s, s.laneStats(s.queue).BreakerOpen)
	})},
	{"starts of a lane count for their window", withSteps(func(s *suite, d time.Duration) {
		s.rated(9, policy.Rate{Starts: 3, Per: time.Minute})
		r := s.claimWithSlack(2, 0)
		require.Len(s, s.claim(r).Jobs, 2)
		s.Advance(time.Minute / 4)
		s.stepClock(d)
		r.Max = 1
		require.Len(s, s.claim(r).Jobs, 1, "the window has one start left")
		s.requireBlocked("three starts")
		s.requireFreeIn(time.Minute*3/4, "a rate")
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 2)
		s.requireFreeIn(time.Minute/4, "a rate")
	})},
	{"starts of a topic count for their window", withSteps(func(s *suite, d time.Duration) {
		rate := policy.Rate{Starts: 5, Per: time.Minute}
		grant := s.permit(s.ask(s.queue.Topic, rate, 5))
		require.Equal(s, 5, grant.Starts)
		s.Advance(time.Minute / 4)
		s.stepClock(d)
		left := s.permit(s.ask(s.queue.Topic, rate, 5))
		require.Zero(s, left.Starts)
		require.InDelta(s, time.Minute*3/4, left.Next, float64(clockTolerance))
		s.stepClock(-d)
		require.Zero(s, s.permit(s.ask(s.queue.Topic, rate, 5)).Starts)
		s.Advance(left.Next + clockTolerance)
		require.Equal(s, 5, s.permit(s.ask(s.queue.Topic, rate, 5)).Starts)
		require.Zero(s, s.permit(s.ask(s.queue.Topic, rate, 5)).Starts)
	})},
}
