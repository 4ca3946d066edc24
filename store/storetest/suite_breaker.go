package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// openBreaker opens the breaker of the test's lane, inserts jobs named 0 to n-1, and waits for the end of the cooldown.
func (s *suite) openBreaker(n int) {
	s.Helper()
	s.changeLane(openBreaker(s.shortTime()))
	for i := range n {
		s.insertNew(s.entry(fmt.Sprint(i)))
	}
	s.advance(s.shortTime() + 2*time.Millisecond)
}

// probe claims the one job that an open breaker allows.
func (s *suite) probe(r store.ClaimRequest) store.ClaimedJob {
	s.Helper()
	got := s.claim(r)
	require.Len(s, got.Jobs, 1)
	require.True(s, got.Jobs[0].Probe)
	require.True(s, got.Queues[0].BreakerOpen)
	return got.Jobs[0]
}

var breakerCases = []testCase{
	{"blocks its lane, then allows one probe and notifies", func(s *suite) {
		s.changeLane(openBreaker(s.shortTime()))
		for i := range 5 {
			s.insertNew(s.entry(fmt.Sprint(i)))
		}
		until := s.laneStats(s.queue).CooldownUntil
		if s.Advance != nil { // else the cooldown may have ended
			require.True(s, s.requireBlocked("while the breaker is open").BreakerOpen)
			require.True(s, s.laneStats(s.queue).BreakerOpen)
		}
		s.requireNotifiedAt(until, "an open breaker")
		several := claimOf(s.queue, s.laneQueue(1), s.queue)
		got := s.claim(several)
		require.Len(s, got.Jobs, 1, "several queues get one probe")
		require.True(s, got.Jobs[0].Probe)
		for _, i := range []int{0, 2} {
			require.True(s, got.Queues[i].BreakerOpen)
			require.True(s, got.Queues[i].Blocked)
			require.False(s, got.Queues[i].More)
		}
		require.False(s, got.Queues[1].BreakerOpen)
		require.True(s, s.requireBlocked("while a probe is running").BreakerOpen)
		s.drainWakeups()
		s.requireNotNotified("a lane whose probe is running")
	}},
	{"concurrent claims get one probe", func(s *suite) {
		s.openBreaker(8)
		var mu sync.Mutex
		var probes []store.ClaimedJob
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				got, err := s.shard().Claim(s.Context(), store.NewToken(), claimOf(s.queue))
				if err != nil {
					s.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				probes = append(probes, got.Jobs...)
			})
		}
		wg.Wait()
		require.Len(s, probes, 1)
		require.True(s, probes[0].Probe)
	}},
	{"no probe while a job of the lane is running", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"), s.entry("c"))
		jobs := s.claimAll("a", "b", "c")
		s.endWith(jobs[0], retry(0), openBreaker(s.shortTime()))
		s.advance(s.shortTime() + 2*time.Millisecond)
		s.requireBlocked("while two are running")
		s.settleOne(jobs[1], retry(0))
		s.requireBlocked("while one is running")
		s.drainWakeups()
		s.settleOne(jobs[2], delivered)
		s.waitNotified(s.queue)
		s.probe(claimOf(s.queue))
		s.requireBlocked("while the probe is running")
	}},
	{"a failed probe opens it again for the new cooldown", func(s *suite) {
		s.openBreaker(2)
		s.endWith(s.probe(claimOf(s.queue)), retry(0), openBreaker(s.shortTime()))
		until := s.laneStats(s.queue).CooldownUntil
		if s.Advance != nil {
			s.requireBlocked("after a probe that failed")
		}
		s.requireNotifiedAt(until, "a breaker that is open again")
		s.probe(claimOf(s.queue))
	}},
	{"a probe that closes it unblocks the lane and notifies", func(s *suite) {
		s.openBreaker(4)
		h := s.probe(claimOf(s.queue))
		s.drainWakeups()
		s.endWith(h, delivered, closed)
		s.waitNotified(s.queue)
		require.False(s, s.laneStats(s.queue).BreakerOpen)
		got := s.claim(claimOf(s.queue))
		require.Len(s, got.Jobs, 3)
		require.False(s, got.Queues[0].BreakerOpen)
		for _, h := range got.Jobs {
			require.False(s, h.Probe)
		}
	}},
	{"a probe whose lease expired is followed by another, with a wake-up", func(s *suite) {
		s.openBreaker(2)
		lost := s.probe(claimFor(s.shortTime(), s.queue))
		s.drainWakeups()
		s.advance(s.shortTime())
		s.expireLeases(1)
		s.waitNotified(s.queue)
		next := s.probe(claimOf(s.queue))
		require.NotEqual(s, lost.Lease, next.Lease)
		stale := settlement(lost, delivered)
		stale.LaneChange = closed
		require.ErrorIs(s, s.settle(stale)[0], store.ErrLeaseLost)
		require.True(s, s.laneStats(s.queue).BreakerOpen, "a lost probe changes nothing")
	}},
	{"a probe that made no attempt is followed by another at once", func(s *suite) {
		s.openBreaker(3)
		for range 2 {
			h := s.probe(claimOf(s.queue))
			s.drainWakeups()
			item := settlement(h, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExpired})
			item.Attempt = job.Attempt{}
			require.NoError(s, s.settle(item)[0])
			s.waitNotified(s.queue)
		}
		s.settleOne(s.probe(claimOf(s.queue)), released)
		s.probe(claimOf(s.queue))
	}},
	{"the claim of a probe's settlement sees the new state", func(s *suite) {
		s.openBreaker(3)
		h, request := s.probe(claimOf(s.queue)), claimOf(s.queue)
		item := settlement(h, delivered)
		_, got, err := s.shard().Settle(s.Context(), store.NewToken(), []store.Settlement{item}, &request)
		require.NoError(s, err)
		require.Len(s, got.Jobs, 1)
		require.True(s, got.Jobs[0].Probe)
		item = settlement(got.Jobs[0], delivered)
		item.LaneChange = closed
		_, got, err = s.shard().Settle(s.Context(), store.NewToken(), []store.Settlement{item}, &request)
		require.NoError(s, err)
		require.Len(s, got.Jobs, 1)
		require.False(s, got.Jobs[0].Probe)
	}},
	{"a repeated claim returns the same probe", func(s *suite) {
		s.openBreaker(3)
		token := store.NewToken()
		for range 2 {
			got, err := s.shard().Claim(s.Context(), token, claimOf(s.queue))
			require.NoError(s, err)
			require.Len(s, got.Jobs, 1)
			require.True(s, got.Jobs[0].Probe)
		}
		s.requireBlocked("after a repeated claim")
	}},
	{"closing keeps the cooldown, unless it sets one", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"), s.entry("c"), s.entry("d"))
		jobs := s.claimAll("a", "b", "c", "d")
		s.endWith(jobs[0], retry(0), openBreaker(long))
		until := s.laneStats(s.queue).CooldownUntil
		s.endWith(jobs[1], delivered, closed)
		row := s.laneStats(s.queue)
		require.Equal(s, until, row.CooldownUntil)
		require.False(s, row.BreakerOpen)
		require.False(s, s.requireBlocked("during the cooldown").BreakerOpen)
		s.endWith(jobs[2], delivered, store.LaneChange{Breaker: store.CloseBreaker, Cooldown: 2 * long})
		require.True(s, s.laneStats(s.queue).CooldownUntil.After(until))
	}},
	{"opened without a cooldown it allows a probe at once", func(s *suite) {
		s.changeLane(openBreaker(0))
		s.insertNew(s.entry("a"), s.entry("b"))
		s.waitNotified(s.queue)
		s.probe(claimOf(s.queue))
		s.requireBlocked("while the probe is running")
	}},
	{"is counted in LaneStats and TopicStats", func(s *suite) {
		s.changeLane(openBreaker(long))
		s.insertNew(s.entry("a"), s.entry("b", in(s.laneQueue(1))))
		require.True(s, s.laneStats(s.queue).BreakerOpen)
		require.False(s, s.laneStats(s.laneQueue(1)).BreakerOpen)
		require.EqualValues(s, 1, s.stats().OpenBreakers)
		s.queue = s.laneQueue(2)
		s.openBreaker(2)
		require.EqualValues(s, 2, s.stats().OpenBreakers)
		h := s.probe(claimOf(s.queue))
		require.EqualValues(s, 2, s.stats().OpenBreakers, "a breaker that waits for its probe is open")
		s.endWith(h, delivered, closed)
		require.EqualValues(s, 1, s.stats().OpenBreakers)
	}},
	{"a paused topic gets no probe", func(s *suite) {
		s.openBreaker(2)
		s.put(policy.Topic{Paused: true})
		s.requireBlocked("while the topic is paused")
		s.put(policy.Topic{})
		s.probe(claimOf(s.queue))
	}},
	{"is forgotten BreakerRetention after its cooldown", func(s *suite) {
		if s.Advance == nil {
			return // it waits for BreakerRetention
		}
		s.changeLane(openBreaker(s.shortTime()))
		s.insertNew(s.entry("a"), s.entry("b"))
		s.Advance(s.shortTime() + store.BreakerRetention - 2*time.Millisecond)
		require.True(s, s.laneStats(s.queue).BreakerOpen)
		s.settleOne(s.probe(claimFor(3*long, s.queue)), released)
		s.Advance(4 * time.Millisecond)
		require.False(s, s.laneStats(s.queue).BreakerOpen)
		require.Zero(s, s.stats().OpenBreakers)
		got := s.claim(claimOf(s.queue))
		require.Len(s, got.Jobs, 2)
		require.False(s, got.Jobs[0].Probe)
		require.False(s, got.Queues[0].BreakerOpen)
	}},
	{"a running probe keeps it open", func(s *suite) {
		if s.Advance == nil {
			return // it waits for BreakerRetention
		}
		s.changeLane(openBreaker(s.shortTime()))
		s.insertNew(s.entry("a"), s.entry("b"))
		s.Advance(s.shortTime() + store.BreakerRetention - time.Minute)
		h := s.probe(claimFor(3*long, s.queue))
		s.Advance(2 * time.Minute)
		require.True(s, s.requireBlocked("while the probe is running").BreakerOpen)
		require.True(s, s.laneStats(s.queue).BreakerOpen)
		s.endWith(h, retry(0), openBreaker(s.shortTime()))
		s.Advance(s.shortTime() + 2*time.Millisecond)
		s.probe(claimOf(s.queue))
	}},
}
