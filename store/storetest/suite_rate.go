package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// start is a start counted by a rate: its time by the store's clock, and its slack.
type start struct {
	at    time.Time
	slack time.Duration
}

// checkWindows fails when at the moment of any start more starts count than the rate allows, each as if it began as
// late as it may: then no window of the rate's length has more.
func checkWindows(log []start, rate policy.Rate) error {
	for _, s := range log {
		if n := countStarts(log, s.at, rate.Per); n > rate.Starts {
			return fmt.Errorf("%d starts count at %v, of %d in %v", n, s.at, rate.Starts, rate.Per)
		}
	}
	return nil
}

// countStarts returns how many starts count at a moment.
func countStarts(log []start, at time.Time, per time.Duration) (n int) {
	for _, o := range log {
		if !o.at.After(at) && o.at.Add(o.slack+per).After(at) {
			n++
		}
	}
	return n
}

// rate gives the test's topic a lane rate.
func (s *suite) rate(rate policy.Rate) {
	s.Helper()
	s.put(policy.Topic{LaneRate: rate, LaneConcurrency: 10_000})
}

// rated gives the test's topic a lane rate and inserts jobs into its lane.
func (s *suite) rated(jobs int, rate policy.Rate) {
	s.Helper()
	s.rate(rate)
	s.insertMany(jobs, "")
}

// insertMany inserts jobs into the test's lane, whose ids are the prefix and a number.
func (s *suite) insertMany(jobs int, prefix string) {
	s.Helper()
	var entries []store.NewJob
	for i := range jobs {
		entries = append(entries, s.entry(fmt.Sprint(prefix, i)))
	}
	for part := range slices.Chunk(entries, store.MaxBatch) {
		s.insertNew(part...)
	}
}

// claimWithSlack is claimOf with a slack and a maximum of jobs.
func (s *suite) claimWithSlack(n int, slack time.Duration) store.ClaimRequest {
	r := claimOf(s.queue)
	r.Slack, r.Max = slack, n
	return r
}

var rateCases = []testCase{
	{"concurrent claims never exceed the rate in any window", func(s *suite) {
		per := s.shortTime() / 4
		for _, slacks := range [][]time.Duration{{0}, {0, per / 5, per / 2}} {
			rate := policy.Rate{Starts: 5, Per: per}
			s.queue = s.laneQueue(len(slacks))
			s.put(policy.Topic{LaneRate: rate, LaneConcurrency: 10_000})
			random := rand.New(rand.NewPCG(1, uint64(len(slacks))))
			var mu sync.Mutex
			var log []start
			for i := range s.number(15, 30) {
				s.insertMany(8, fmt.Sprintf("%d-%d-", len(slacks), i)) // enough for what may be claimed before the next
				var wg sync.WaitGroup
				for range 3 {
					request := s.claimWithSlack(1+random.IntN(4), slacks[random.IntN(len(slacks))])
					wg.Go(func() {
						got, err := s.shard().Claim(s.Context(), store.NewToken(), request)
						if err != nil {
							s.Error(err)
							return
						}
						mu.Lock()
						defer mu.Unlock()
						for _, h := range got.Jobs {
							log = append(log, start{claimed(h), request.Slack})
						}
					})
				}
				wg.Wait()
				s.advance(time.Duration(1+random.IntN(int(per/time.Millisecond))) * time.Millisecond * 2 / 3)
			}
			require.NoError(s, checkWindows(log, rate))
			require.GreaterOrEqual(s, len(log), 3*rate.Starts, "the rate allows starts")
		}
	}},
	{"claims return exactly the starts that the window has left", func(s *suite) {
		if s.Advance == nil {
			return // the clock moves between two calls
		}
		rate := policy.Rate{Starts: 7, Per: 10 * time.Second}
		s.rated(200, rate)
		random := rand.New(rand.NewPCG(2, 2))
		var log []start
		for range s.number(40, 100) {
			now, n, slack := s.now(), 1+random.IntN(5), time.Duration(random.IntN(2000))*time.Millisecond
			room := rate.Starts
			for _, o := range log {
				if o.at.Add(o.slack + rate.Per).After(now) {
					room--
				}
			}
			got := s.claim(s.claimWithSlack(n, slack))
			require.Len(s, got.Jobs, max(0, min(n, room)))
			for range got.Jobs {
				log = append(log, start{now, slack})
			}
			require.Equal(s, room <= n, got.Queues[0].Blocked)
			require.Equal(s, room > n, got.Queues[0].More)
			s.Advance(time.Duration(random.IntN(3000)) * time.Millisecond)
		}
	}},
	{"a full window blocks the lane until its first start leaves, then notifies", func(s *suite) {
		per, slack := s.shortTime(), s.shortTime()/10
		s.rated(6, policy.Rate{Starts: 2, Per: per})
		s.waitNotified(s.queue)
		for i := range 3 {
			got := s.claim(s.claimWithSlack(store.MaxBatch, slack))
			require.Len(s, got.Jobs, 2)
			require.True(s, got.Jobs[0].Rated)
			require.True(s, got.Queues[0].Blocked)
			require.False(s, got.Queues[0].More)
			require.False(s, got.Queues[0].BreakerOpen)
			if i < 2 { // then no job is left
				s.requireNotifiedAt(claimed(got.Jobs[0]).Add(slack+per), "a lane at its rate")
			}
		}
	}},
	{"a lane notified just before is notified when its window has room", func(s *suite) {
		s.rated(0, policy.Rate{Starts: 1, Per: store.RenotifyAfter / 2})
		s.makeReady("a", "b", "c")
		got := s.claim(claimOf(s.queue))
		require.Len(s, got.Jobs, 1)
		s.requireNotifiedAt(claimed(got.Jobs[0]).Add(store.RenotifyAfter/2), "a lane at its rate")
	}},
	{"lanes are counted apart, and lanes without a rate are not limited", func(s *suite) {
		s.put(policy.Topic{LaneRate: policy.Rate{Starts: 2, Per: long}})
		free := s.queueOf(s.queue.Namespace, "free", 0)
		for i := range 5 {
			s.insertNew(s.entry(fmt.Sprint(i)), s.entry(fmt.Sprintf("b%d", i), in(s.laneQueue(1))),
				s.entry(fmt.Sprintf("free-%d", i), in(free)))
		}
		got := s.claim(claimOf(s.laneQueue(0), s.laneQueue(1), free))
		require.Len(s, got.Jobs, 9)
		for _, h := range got.Jobs {
			require.Equal(s, h.Queue != free, h.Rated, h.ID)
		}
		require.False(s, got.Queues[2].Blocked)
	}},
	{"a released job counts", func(s *suite) {
		s.rated(1, policy.Rate{Starts: 2, Per: long})
		s.settleOne(s.claimAll("0")[0], released)
		s.settleOne(s.claimAll("0")[0], released)
		s.requireBlocked("after two starts")
	}},
	{"a job whose time to live is over does not count as a start", func(s *suite) {
		s.rate(policy.Rate{Starts: 2, Per: long})
		for i, ttl := range []option{expires(s.shortTime()), maxAge(s.shortTime())} {
			for k := range 3 {
				s.insertNew(s.entry(fmt.Sprintf("old-%d-%d", i, k), ttl))
			}
		}
		s.insertNew(s.entry("a"), s.entry("b"), s.entry("c"))
		s.advance(s.shortTime() + 2*time.Millisecond)
		for _, n := range []int{2, 1, 2, 1} { // never more at once than the rate allows
			got := s.claim(s.claimWithSlack(n, 0))
			require.Len(s, got.Jobs, n)
			require.True(s, got.Queues[0].More)
			for _, h := range got.Jobs {
				require.False(s, h.Rated, h.ID)
			}
		}
		got := s.claim(s.claimWithSlack(9, 0)).Jobs
		require.Equal(s, []string{"a", "b"}, idsOf(got))
		require.True(s, got[0].Rated && got[1].Rated)
		s.requireBlocked("after two starts")
	}},
	{"a repeated claim counts once", func(s *suite) {
		s.rated(9, policy.Rate{Starts: 4, Per: long})
		token, request := store.NewToken(), s.claimWithSlack(2, 0)
		for range 3 {
			got, err := s.shard().Claim(s.Context(), token, request)
			require.NoError(s, err)
			require.Len(s, got.Jobs, 2)
			require.True(s, got.Jobs[0].Rated)
		}
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 2)
		s.requireBlocked("after four starts")
	}},
	{"the claim of a settlement counts", func(s *suite) {
		s.rated(9, policy.Rate{Starts: 3, Per: long})
		var items []store.Settlement
		for _, h := range s.claim(s.claimWithSlack(2, 0)).Jobs {
			items = append(items, settlement(h, delivered))
		}
		request, token := claimOf(s.queue), store.NewToken()
		for range 2 {
			_, got, err := s.shard().Settle(s.Context(), token, items, &request)
			require.NoError(s, err)
			require.Len(s, got.Jobs, 1)
		}
		s.requireBlocked("after three starts")
	}},
	{"a changed rate applies from the next claim, to the starts in its window", func(s *suite) {
		s.rated(30, policy.Rate{Starts: 3, Per: 40 * time.Minute})
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 3)
		s.put(policy.Topic{LaneRate: policy.Rate{Starts: 2, Per: 40 * time.Minute}})
		s.requireBlocked("a lower rate")
		s.drainWakeups()
		s.put(policy.Topic{LaneRate: policy.Rate{Starts: 5, Per: 50 * time.Minute}})
		s.waitNotified(s.queue)
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 2)
		s.requireBlocked("five starts of a higher rate")
		s.advance(2 * time.Millisecond)
		s.drainWakeups()
		s.put(policy.Topic{LaneRate: policy.Rate{Starts: 5, Per: time.Millisecond}})
		s.waitNotified(s.queue)
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 5, "a window that has passed")
		s.put(policy.Topic{})
		s.waitNotified(s.queue)
		got := s.claim(claimOf(s.queue))
		require.Len(s, got.Jobs, 20, "no rate")
		require.False(s, got.Jobs[0].Rated)
	}},
	{"a shorter window is not exceeded after a change of the rate", func(s *suite) {
		if s.Advance == nil {
			return // the clock moves between two calls
		}
		for _, rates := range [][]policy.Rate{
			{{Starts: 40, Per: time.Second}, {Starts: 20, Per: 500 * time.Millisecond}, {
				Starts: 4, Per: 100 * time.Millisecond,
			}},
			{
				{Starts: 100, Per: 10 * time.Second},
				{Starts: 25, Per: 2500 * time.Millisecond},
				{Starts: 3, Per: time.Second},
			},
		} {
			s.queue = s.laneQueue(rates[0].Starts)
			s.rate(rates[0])
			s.insertMany(2*rates[0].Starts, fmt.Sprint(rates[0].Starts, "-"))
			random := rand.New(rand.NewPCG(3, 3))
			var log []start
			claim := func(rate policy.Rate, least int) {
				began := len(log)
				for i := 0; len(log)-began < least; i++ {
					slack := time.Duration(random.IntN(3)) * rate.Per / 100
					for _, h := range s.claim(s.claimWithSlack(1+random.IntN(5), slack)).Jobs {
						log = append(log, start{claimed(h), slack})
						require.LessOrEqual(s, countStarts(log, log[len(log)-1].at, rate.Per), rate.Starts,
							"after %d starts of %v", began, rate)
					}
					require.Less(s, i, 3000, "the rate allows starts")
					s.Advance(rate.Per / time.Duration(20+random.IntN(40)))
				}
			}
			for i, rate := range rates {
				s.rate(rate)
				claim(rate, min(rates[0].Starts>>i, s.number(2, 4)*rate.Starts))
			}
		}
	}},
	{"a large rate is not exceeded, and counts a start little longer than its window", func(s *suite) {
		if s.Advance == nil {
			return // the clock moves between two calls
		}
		rate := policy.Rate{Starts: 100, Per: 32 * time.Second} // more than CountedStarts
		s.rated(500, rate)
		var log []start
		grain := rate.Per / store.CountedStarts
		for i := range 150 {
			now, slack := s.now(), time.Duration(i%3)*100*time.Millisecond
			surely := rate.Starts
			for _, o := range log {
				if o.at.Add(o.slack + rate.Per + grain + 2*time.Millisecond).After(now) {
					surely--
				}
			}
			n := 1 + i%7
			got := s.claim(s.claimWithSlack(n, slack))
			require.GreaterOrEqual(s, len(got.Jobs), min(n, surely))
			for _, h := range got.Jobs {
				log = append(log, start{claimed(h), slack})
			}
			s.Advance(time.Duration(i*377%997) * time.Millisecond)
		}
		require.NoError(s, checkWindows(log, rate))
		require.Greater(s, len(log), rate.Starts)
	}},
	{"starts survive a restart", func(s *suite) {
		if s.Reopen == nil {
			return // the engine cannot be reopened
		}
		s.rated(9, policy.Rate{Starts: 4, Per: long})
		for _, h := range s.claim(s.claimWithSlack(3, 0)).Jobs {
			s.settleOne(h, delivered)
		}
		s.Store = s.Reopen()
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 1)
		s.requireBlocked("after four starts, with a restart between")
	}},
	{"a probe counts, and the later of cooldown and rate decides", func(s *suite) {
		s.rated(5, policy.Rate{Starts: 2, Per: 2 * s.shortTime()})
		got := s.claim(s.claimWithSlack(1, 0))
		s.endWith(got.Jobs[0], delivered, openBreaker(s.shortTime()))
		until := s.laneStats(s.queue).CooldownUntil
		s.requireNotifiedAt(until, "the cooldown")
		h := s.probe(s.claimWithSlack(3, 0))
		require.True(s, h.Rated)
		s.endWith(h, delivered, store.LaneChange{Breaker: store.CloseBreaker, Cooldown: s.shortTime() / 2})
		if s.Advance != nil { // else the starts may have left
			s.requireNotifiedAt(claimed(got.Jobs[0]).Add(2*s.shortTime()), "the rate")
		}
	}},
}
