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

// halfOpen opens the breaker of the test's lane, adds jobs named 0 to n-1, and waits until the hold is over.
func (s *suite) halfOpen(n int) {
	s.Helper()
	s.turn(opened(s.brief()))
	for i := range n {
		s.add(s.entry(fmt.Sprint(i)))
	}
	s.pass(s.brief() + 2*time.Millisecond)
}

// probe claims the one job that an open breaker gives.
func (s *suite) probe(r store.ClaimRequest) store.ClaimedJob {
	s.Helper()
	got := s.claim(r)
	require.Len(s, got.Jobs, 1)
	require.True(s, got.Jobs[0].Probe)
	require.True(s, got.Queues[0].BreakerOpen)
	return got.Jobs[0]
}

var breakerCases = []sentence{
	{"an open breaker gives nothing, and after its hold exactly one job, with a ring", func(s *suite) {
		s.turn(opened(s.brief()))
		for i := range 5 {
			s.add(s.entry(fmt.Sprint(i)))
		}
		until := s.row(s.queue).CooldownUntil
		if s.Advance != nil { // else the hold may be over already
			require.True(s, s.nothing("while the breaker is open").BreakerOpen)
			require.True(s, s.row(s.queue).BreakerOpen)
		}
		s.ringsAt(until, "an open breaker")
		several := want(s.queue, s.lane(1), s.queue)
		got := s.claim(several)
		require.Len(s, got.Jobs, 1, "several wants get one probe")
		require.True(s, got.Jobs[0].Probe)
		for _, i := range []int{0, 2} {
			require.True(s, got.Queues[i].BreakerOpen)
			require.True(s, got.Queues[i].Blocked)
			require.False(s, got.Queues[i].More)
		}
		require.False(s, got.Queues[1].BreakerOpen)
		require.True(s, s.nothing("while a probe is out").BreakerOpen)
		s.quiet()
		s.silent("a lane whose probe is out")
	}},
	{"two who claim at once get one probe", func(s *suite) {
		s.halfOpen(8)
		var mu sync.Mutex
		var probes []store.ClaimedJob
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				got, err := s.shard().Claim(s.Context(), store.NewToken(), want(s.queue))
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
	{"there is no probe while something of the lane is held", func(s *suite) {
		s.add(s.entry("a"), s.entry("b"), s.entry("c"))
		jobs := s.hold("a", "b", "c")
		s.endWith(jobs[0], again(0), opened(s.brief()))
		s.pass(s.brief() + 2*time.Millisecond)
		s.nothing("while two are held")
		s.end(jobs[1], again(0))
		s.nothing("while one is held")
		s.quiet()
		s.end(jobs[2], delivered)
		s.hears(s.queue)
		s.probe(want(s.queue))
		s.nothing("while the probe is held")
	}},
	{"a probe that fails opens the breaker again, for as long as it says", func(s *suite) {
		s.halfOpen(2)
		s.endWith(s.probe(want(s.queue)), again(0), opened(s.brief()))
		until := s.row(s.queue).CooldownUntil
		if s.Advance != nil {
			s.nothing("after a probe that failed")
		}
		s.ringsAt(until, "a breaker that is open again")
		s.probe(want(s.queue))
	}},
	{"a probe that closes the breaker lets everything go, with a ring", func(s *suite) {
		s.halfOpen(4)
		h := s.probe(want(s.queue))
		s.quiet()
		s.endWith(h, delivered, closed)
		s.hears(s.queue)
		require.False(s, s.row(s.queue).BreakerOpen)
		got := s.claim(want(s.queue))
		require.Len(s, got.Jobs, 3)
		require.False(s, got.Queues[0].BreakerOpen)
		for _, h := range got.Jobs {
			require.False(s, h.Probe)
		}
	}},
	{"a probe that lapses is followed by another, with a ring", func(s *suite) {
		s.halfOpen(2)
		lost := s.probe(wantFor(s.brief(), s.queue))
		s.quiet()
		s.pass(s.brief())
		s.lapses(1)
		s.hears(s.queue)
		next := s.probe(want(s.queue))
		require.NotEqual(s, lost.Lease, next.Lease)
		stale := settlement(lost, delivered)
		stale.Lane = closed
		require.ErrorIs(s, s.settle(stale)[0], store.ErrLeaseLost)
		require.True(s, s.row(s.queue).BreakerOpen, "a probe that was lost decides nothing")
	}},
	{"a probe that ends without a request lets the next one come at once", func(s *suite) {
		s.halfOpen(3)
		for range 2 {
			h := s.probe(want(s.queue))
			s.quiet()
			item := settlement(h, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExpired})
			item.Attempt = job.Attempt{}
			require.NoError(s, s.settle(item)[0])
			s.hears(s.queue)
		}
		s.end(s.probe(want(s.queue)), released)
		s.probe(want(s.queue))
	}},
	{"the claim in the trip of a probe's settlement gets what the settlement allows", func(s *suite) {
		s.halfOpen(3)
		h, request := s.probe(want(s.queue)), want(s.queue)
		item := settlement(h, delivered)
		_, got, err := s.shard().Settle(s.Context(), store.NewToken(), []store.Settlement{item}, &request)
		require.NoError(s, err)
		require.Len(s, got.Jobs, 1)
		require.True(s, got.Jobs[0].Probe)
		item = settlement(got.Jobs[0], delivered)
		item.Lane = closed
		_, got, err = s.shard().Settle(s.Context(), store.NewToken(), []store.Settlement{item}, &request)
		require.NoError(s, err)
		require.Len(s, got.Jobs, 1)
		require.False(s, got.Jobs[0].Probe)
	}},
	{"a repeated claim says again that its job is a probe, and takes no other", func(s *suite) {
		s.halfOpen(3)
		token := store.NewToken()
		for range 2 {
			got, err := s.shard().Claim(s.Context(), token, want(s.queue))
			require.NoError(s, err)
			require.Len(s, got.Jobs, 1)
			require.True(s, got.Jobs[0].Probe)
		}
		s.nothing("after a repeated claim")
	}},
	{"closing leaves the hold, unless it says one itself", func(s *suite) {
		s.add(s.entry("a"), s.entry("b"), s.entry("c"), s.entry("d"))
		jobs := s.hold("a", "b", "c", "d")
		s.endWith(jobs[0], again(0), opened(long))
		until := s.row(s.queue).CooldownUntil
		s.endWith(jobs[1], delivered, closed)
		row := s.row(s.queue)
		require.Equal(s, until, row.CooldownUntil)
		require.False(s, row.BreakerOpen)
		require.False(s, s.nothing("while the hold lasts").BreakerOpen)
		s.endWith(jobs[2], delivered, store.LaneChange{Breaker: store.CloseBreaker, Cooldown: 2 * long})
		require.True(s, s.row(s.queue).CooldownUntil.After(until))
	}},
	{"a breaker that opens without a hold asks for a probe at once", func(s *suite) {
		s.turn(opened(0))
		s.add(s.entry("a"), s.entry("b"))
		s.hears(s.queue)
		s.probe(want(s.queue))
		s.nothing("while the probe is out")
	}},
	{"an open breaker shows in the counts of its lane and its topic", func(s *suite) {
		s.turn(opened(long))
		s.add(s.entry("a"), s.entry("b", in(s.lane(1))))
		require.True(s, s.row(s.queue).BreakerOpen)
		require.False(s, s.row(s.lane(1)).BreakerOpen)
		require.EqualValues(s, 1, s.stats().OpenBreakers)
		s.queue = s.lane(2)
		s.halfOpen(2)
		require.EqualValues(s, 2, s.stats().OpenBreakers)
		h := s.probe(want(s.queue))
		require.EqualValues(s, 2, s.stats().OpenBreakers, "a breaker that waits for its probe is open")
		s.endWith(h, delivered, closed)
		require.EqualValues(s, 1, s.stats().OpenBreakers)
	}},
	{"a lane's concurrency and its topic's pause hold for probes as well", func(s *suite) {
		s.halfOpen(2)
		s.put(policy.Topic{Paused: true})
		s.nothing("while the topic is paused")
		s.put(policy.Topic{})
		s.probe(want(s.queue))
	}},
	{"an open breaker is forgotten a while after its hold", func(s *suite) {
		if s.Advance == nil {
			return // it takes an hour
		}
		s.turn(opened(s.brief()))
		s.add(s.entry("a"), s.entry("b"))
		s.Advance(s.brief() + store.BreakerRetention - 2*time.Millisecond)
		require.True(s, s.row(s.queue).BreakerOpen)
		s.end(s.probe(wantFor(3*long, s.queue)), released)
		s.Advance(4 * time.Millisecond)
		require.False(s, s.row(s.queue).BreakerOpen)
		require.Zero(s, s.stats().OpenBreakers)
		got := s.claim(want(s.queue))
		require.Len(s, got.Jobs, 2)
		require.False(s, got.Jobs[0].Probe)
		require.False(s, got.Queues[0].BreakerOpen)
	}},
	{"a probe that is held keeps its breaker open", func(s *suite) {
		if s.Advance == nil {
			return // it takes an hour
		}
		s.turn(opened(s.brief()))
		s.add(s.entry("a"), s.entry("b"))
		s.Advance(s.brief() + store.BreakerRetention - time.Minute)
		h := s.probe(wantFor(3*long, s.queue))
		s.Advance(2 * time.Minute)
		require.True(s, s.nothing("while the probe is out").BreakerOpen)
		require.True(s, s.row(s.queue).BreakerOpen)
		s.endWith(h, again(0), opened(s.brief()))
		s.Advance(s.brief() + 2*time.Millisecond)
		s.probe(want(s.queue))
	}},
}
