package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// settleUnused returns the settlement of a claim without an attempt, with no entry in the history.
func settleUnused(h store.ClaimedJob, v policy.Verdict, slack time.Duration) store.Settlement {
	item := settlement(h, v)
	item.Attempt, item.Lane = job.Attempt{}, startUnused(slack)
	return item
}

var unusedCases = []testCase{
	{"a start that no attempt was made of is there for the next at once, however its job ends", func(s *suite) {
		slack := s.shortTime() / 10
		s.rated(9, policy.Rate{Starts: 2, Per: long})
		for _, v := range []policy.Verdict{dead, retry(2 * long), released, delivered} {
			jobs := s.claim(s.claimWithSlack(9, slack)).Jobs
			require.Len(s, jobs, 2, v.Kind)
			s.requireBlocked("at its rate")
			s.requireIdle(long / 2)
			s.drainWakeups()
			require.Equal(s, []error{nil, nil}, s.settle(settleUnused(jobs[0], v, slack), settleUnused(jobs[1], v, slack)))
			require.Equal(s, []job.Queue{s.queue}, s.wait(timeLimit).Queues, "the lane has room, after %s", v.Kind)
		}
		h := s.claim(s.claimWithSlack(1, slack)).Jobs[0]
		s.settleOne(h, delivered)
		h = s.claim(s.claimWithSlack(1, slack)).Jobs[0]
		s.requireBlocked("an attempt that was made counts")
		_, err := s.cancel(h.ID)
		require.NoError(s, err)
		s.drainWakeups()
		require.NoError(s, s.settle(settleUnused(h, released, slack))[0])
		require.Equal(s, job.Cancelled, s.get(h.ID).State)
		require.Equal(s, []job.Queue{s.queue}, s.wait(timeLimit).Queues)
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 1)
		s.requireBlocked("after two starts")
	}},
	{"the claim in the same trip has the start that is given back", func(s *suite) {
		s.rated(40, policy.Rate{Starts: 1, Per: long})
		request := s.claimWithSlack(5, 0)
		jobs := s.claim(request).Jobs
		for range 30 {
			require.Len(s, jobs, 1)
			token := store.NewToken()
			for range 2 {
				errs, next, err := s.shard().Settle(s.Context(), token, []store.Settlement{settleUnused(jobs[0], dead, 0)}, &request)
				require.NoError(s, err)
				require.NoError(s, errs[0])
				require.Len(s, next.Jobs, 1, "as often as it is sent")
				require.True(s, next.Queues[0].Blocked)
				jobs = next.Jobs
			}
		}
		s.requireBlocked("one start is under way")
	}},
	{"a settlement gives back no more than its own start, once, and none when it is refused", func(s *suite) {
		s.rated(9, policy.Rate{Starts: 3, Per: long})
		jobs := s.claim(s.claimWithSlack(3, 0)).Jobs
		lost := settleUnused(jobs[0], dead, 0)
		lost.Lease = store.NewToken()
		require.ErrorIs(s, s.settle(lost)[0], store.ErrLeaseLost)
		s.requireBlocked("a settlement was refused")
		item, token := settleUnused(jobs[0], dead, 0), store.NewToken()
		for range 3 {
			_, _, err := s.shard().Settle(s.Context(), token, []store.Settlement{item}, nil)
			require.NoError(s, err)
		}
		require.ErrorIs(s, s.settle(item)[0], store.ErrLeaseLost)
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 1)
		s.requireBlocked("three starts are under way")
	}},
	{"what was claimed under no rate gives nothing back of the starts that one counts since", func(s *suite) {
		s.rated(9, policy.Rate{})
		free := s.claim(s.claimWithSlack(1, 0)).Jobs[0]
		s.put(policy.Topic{LaneRate: policy.Rate{Starts: 2, Per: long}})
		jobs := s.claim(s.claimWithSlack(9, 0)).Jobs
		require.Len(s, jobs, 2)
		require.NoError(s, s.settle(settleUnused(free, dead, 0))[0])
		s.requireBlocked("two starts are under way")
		s.put(policy.Topic{})
		require.NoError(s, s.settle(settleUnused(jobs[0], dead, 0))[0], "a rate that was taken away")
		require.NotEmpty(s, s.claim(claimOf(s.queue)).Jobs)
	}},
	{"a start that has left takes none with it that was made at the same time or since", func(s *suite) {
		rate := policy.Rate{Starts: 4, Per: 2 * s.shortTime()}
		s.rated(20, rate)
		early := s.claim(s.claimWithSlack(2, 0)).Jobs
		late := s.claim(s.claimWithSlack(2, long)).Jobs
		require.Len(s, early, 2)
		require.Len(s, late, 2)
		s.advance(rate.Per + 2*time.Millisecond)
		since := s.claim(s.claimWithSlack(9, long)).Jobs
		require.Len(s, since, 2)
		require.Equal(s, []error{nil, nil}, s.settle(settleUnused(early[0], dead, 0), settleUnused(early[1], dead, 0)))
		s.requireBlocked("four starts count")
		require.NoError(s, s.settle(settleUnused(late[0], dead, long))[0])
		require.Len(s, s.claim(s.claimWithSlack(9, long)).Jobs, 1)
	}},
	{"a lane that is held back, or whose breaker is open, stays so when a start is given back", func(s *suite) {
		s.rated(9, policy.Rate{Starts: 2, Per: long})
		jobs := s.claim(s.claimWithSlack(2, 0)).Jobs
		item := settleUnused(jobs[0], released, 0)
		item.Lane.Cooldown = s.shortTime()
		require.NoError(s, s.settle(item)[0])
		s.requireBlocked("a cooldown")
		s.requireNotifiedAt(s.laneStats(s.queue).CooldownUntil, "the cooldown")
		again := s.claim(s.claimWithSlack(9, 0)).Jobs
		require.Len(s, again, 1, "the start that was given back")
		item = settleUnused(again[0], released, 0)
		item.Lane.Breaker = store.OpenBreaker
		require.NoError(s, s.settle(item)[0])
		require.True(s, s.requireBlocked("a job is running").BreakerOpen)
		s.settleOne(jobs[1], delivered)
		require.True(s, s.claim(s.claimWithSlack(9, 0)).Jobs[0].Probe)
	}},
	{"no window has more starts than the rate allows, whatever is given back", func(s *suite) {
		for i, rate := range []policy.Rate{{Starts: 6, Per: s.shortTime() / 2}, {Starts: 70, Per: s.shortTime() / 2}} {
			name := fmt.Sprint(rate.Starts)
			s.queue = s.laneQueue(i)
			s.put(policy.Topic{LaneRate: rate, LaneConcurrency: 10_000})
			random := rand.New(rand.NewPCG(4, uint64(rate.Starts)))
			slacks := []time.Duration{0, rate.Per / 10, rate.Per / 4, rate.Per}
			type under struct {
				store.ClaimedJob
				slack time.Duration
			}
			var log []start
			var held []under
			back := 0
			for round := range 40 {
				var entries []store.NewJob
				for k := range rate.Starts {
					entries = append(entries, s.entry(fmt.Sprintf("%s-%d-%d", name, round, k)))
				}
				s.insertNew(entries...)
				for range 1 + random.IntN(3) {
					slack := slacks[random.IntN(len(slacks))]
					for _, h := range s.claim(s.claimWithSlack(1+random.IntN(rate.Starts/2), slack)).Jobs {
						held = append(held, under{h, slack})
					}
				}
				random.Shuffle(len(held), func(a, b int) { held[a], held[b] = held[b], held[a] })
				var items []store.Settlement
				for n := random.IntN(len(held) + 1); n > 0; n-- {
					h := held[0]
					held = held[1:]
					if random.IntN(2) == 0 {
						back++
						items = append(items, settleUnused(h.ClaimedJob, dead, h.slack))
					} else {
						log = append(log, start{claimed(h.ClaimedJob), h.slack})
						items = append(items, settlement(h.ClaimedJob, dead))
					}
				}
				for _, err := range s.settle(items...) {
					require.NoError(s, err)
				}
				s.advance(time.Duration(1+random.IntN(int(rate.Per/time.Millisecond))) * time.Millisecond / 3)
			}
			for _, h := range held {
				log = append(log, start{claimed(h.ClaimedJob), h.slack})
			}
			require.NoError(s, checkWindows(log, rate), name)
			require.GreaterOrEqual(s, len(log), 2*rate.Starts, name)
			require.GreaterOrEqual(s, back, rate.Starts, name)
		}
	}},
	{"what was given back stays so in the next process", func(s *suite) {
		if s.Reopen == nil {
			return // the engine cannot be reopened
		}
		s.rated(9, policy.Rate{Starts: 3, Per: long})
		jobs := s.claim(s.claimWithSlack(3, 0)).Jobs
		s.settleOne(jobs[0], delivered)
		s.settleOne(jobs[1], delivered)
		require.NoError(s, s.settle(settleUnused(jobs[2], dead, 0))[0])
		s.Store = s.Reopen()
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 1)
		s.requireBlocked("after three starts in two lives")
	}},
}
