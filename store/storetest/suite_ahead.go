package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// aheadSuite is a suite whose queue has a concurrency of 2 and many jobs, and two lease owners.
type aheadSuite struct {
	*suite

	first, second store.LeaseOwner
}

func (s *suite) ahead(topic policy.Topic) *aheadSuite {
	topic.LaneConcurrency = 2
	s.put(topic)
	for i := range 20 {
		s.insertNew(s.entry(fmt.Sprint(i)))
	}
	return &aheadSuite{suite: s, first: store.NewLeaseOwner(), second: store.NewLeaseOwner()}
}

// claimAs claims as many jobs of the queue as an owner may have, and ahead more.
func (s *aheadSuite) claimAs(owner store.LeaseOwner, ahead int) []store.ClaimedJob {
	s.Helper()
	request := claimOf(s.queue)
	request.Queues[0].Ahead = ahead
	got, err := s.shard().Claim(s.Context(), owner.NewToken(), request)
	require.NoError(s, err)
	return got.Jobs
}

func (s *aheadSuite) settleAll(jobs []store.ClaimedJob) {
	s.Helper()
	for _, h := range jobs {
		s.settleOne(h, delivered)
	}
}

var aheadCases = []testCase{
	{"one owner of all leases gets Ahead jobs beyond lane_concurrency", func(s *suite) {
		a := s.ahead(policy.Topic{})
		request := claimOf(s.queue)
		request.Queues[0].Ahead = 3
		got, err := s.shard().Claim(s.Context(), a.first.NewToken(), request)
		require.NoError(s, err)
		require.Len(s, got.Jobs, 5)
		require.True(s, got.Queues[0].Blocked, "for all others")
		require.False(s, got.Queues[0].More)
		require.Empty(s, a.claimAs(a.first, 3))
		require.Len(s, a.claimAs(a.first, 4), 1)
		s.settleOne(got.Jobs[0], delivered)
		require.Len(s, a.claimAs(a.first, 4), 1)
		require.Empty(s, a.claimAs(a.first, 0))
	}},
	{"gets them after a claim up to lane_concurrency", func(s *suite) {
		a := s.ahead(policy.Topic{})
		require.Len(s, a.claimAs(a.first, 0), 2)
		require.Len(s, a.claimAs(a.first, 3), 3)
	}},
	{"another owner gets jobs only below lane_concurrency, and never more", func(s *suite) {
		a := s.ahead(policy.Topic{})
		jobs := a.claimAs(a.first, 3)
		require.Len(s, jobs, 5)
		a.settleAll(jobs[:3])
		require.Empty(s, a.claimAs(a.second, 3))
		s.requireBlocked("for a claim without Ahead")
		s.settleOne(jobs[3], delivered)
		require.Len(s, a.claimAs(a.second, 3), 1)
		require.Empty(s, a.claimAs(a.second, 3))
	}},
	{"an owner loses the exception while another has a lease, and gets it back", func(s *suite) {
		a := s.ahead(policy.Topic{})
		jobs := a.claimAs(a.first, 3)
		a.settleAll(jobs[:4])
		other := a.claimAs(a.second, 3)
		require.Len(s, other, 1)
		require.Empty(s, a.claimAs(a.first, 3))
		s.settleOne(jobs[4], delivered)
		more := a.claimAs(a.first, 3)
		require.Len(s, more, 1)
		s.settleOne(other[0], delivered)
		require.Len(s, a.claimAs(a.first, 3), 4)
	}},
	{"the other owner gets the exception when the first has no lease left", func(s *suite) {
		a := s.ahead(policy.Topic{})
		jobs := a.claimAs(a.first, 3)
		a.settleAll(jobs[1:])
		other := a.claimAs(a.second, 3)
		require.Len(s, other, 1)
		s.settleOne(jobs[0], delivered)
		require.Len(s, a.claimAs(a.second, 3), 4)
		require.Empty(s, a.claimAs(a.first, 3))
		s.settleOne(other[0], delivered)
		require.Empty(s, a.claimAs(a.first, 3), "four are leased to the second")
	}},
	{"takes the exception with a settlement", func(s *suite) {
		a := s.ahead(policy.Topic{})
		jobs := a.claimAs(a.first, 1)
		require.Len(s, jobs, 3)
		request := claimOf(s.queue)
		request.Queues[0].Ahead = 1
		_, got, err := s.shard().Settle(s.Context(), a.first.NewToken(),
			[]store.Settlement{settlement(jobs[0], delivered)}, &request)
		require.NoError(s, err)
		require.Len(s, got.Jobs, 1)
		_, got, err = s.shard().Settle(s.Context(), a.second.NewToken(),
			[]store.Settlement{settlement(got.Jobs[0], delivered)}, &request)
		require.NoError(s, err)
		require.Empty(s, got.Jobs, "two are leased to the first")
	}},
	{"a repeated token returns the same jobs and changes nothing", func(s *suite) {
		a := s.ahead(policy.Topic{})
		request, token := claimOf(s.queue), a.first.NewToken()
		request.Queues[0].Ahead = 3
		first, err := s.shard().Claim(s.Context(), token, request)
		require.NoError(s, err)
		repeat, err := s.shard().Claim(s.Context(), token, request)
		require.NoError(s, err)
		require.ElementsMatch(s, idsOf(first.Jobs), idsOf(repeat.Jobs))
		require.Empty(s, a.claimAs(a.first, 3))
		a.settleAll(first.Jobs)
		other := a.claimAs(a.second, 3)
		require.Len(s, other, 5)
		repeat, err = s.shard().Claim(s.Context(), token, request)
		require.NoError(s, err)
		require.Empty(s, repeat.Jobs)
		require.Len(s, a.claimAs(a.second, 4), 1, "the repeat is no claim of the first")
	}},
	{"a paused lane gives nothing", func(s *suite) {
		a := s.ahead(policy.Topic{})
		require.Len(s, a.claimAs(a.first, 0), 2)
		s.putLane(s.queue, policy.Lane{Paused: true})
		require.Empty(s, a.claimAs(a.first, 3))
		s.putLane(s.queue, policy.Lane{})
		require.Len(s, a.claimAs(a.first, 3), 3)
	}},
	{"a lane in a cooldown gives nothing", func(s *suite) {
		a := s.ahead(policy.Topic{})
		jobs := a.claimAs(a.first, 3)
		item := settlement(jobs[0], delivered)
		item.LaneChange = store.LaneChange{Cooldown: long}
		require.NoError(s, s.settle(item)[0])
		require.Empty(s, a.claimAs(a.first, 3))
	}},
	{"a lane with a rate keeps to lane_concurrency", func(s *suite) {
		a := s.ahead(policy.Topic{LaneRate: policy.Rate{Starts: 10, Per: long}})
		require.Len(s, a.claimAs(a.first, 3), 2)
		require.Empty(s, a.claimAs(a.first, 3))
	}},
	{"an open breaker gives its probe alone", func(s *suite) {
		a := s.ahead(policy.Topic{})
		jobs := a.claimAs(a.first, 0)
		item := settlement(jobs[0], delivered)
		item.LaneChange = store.LaneChange{Breaker: store.OpenBreaker}
		require.NoError(s, s.settle(item)[0])
		require.Empty(s, a.claimAs(a.first, 3))
		s.settleOne(jobs[1], delivered)
		probe := a.claimAs(a.first, 3)
		require.Len(s, probe, 1)
		require.True(s, probe[0].Probe)
		require.Empty(s, a.claimAs(a.first, 3))
	}},
	{"counts from a lowered or raised limit", func(s *suite) {
		a := s.ahead(policy.Topic{})
		jobs := a.claimAs(a.first, 3)
		require.Len(s, jobs, 5)
		s.put(policy.Topic{LaneConcurrency: 1})
		a.settleAll(jobs[:1])
		require.Empty(s, a.claimAs(a.first, 3))
		s.settleOne(jobs[1], delivered)
		require.Len(s, a.claimAs(a.first, 3), 1)
		s.putLane(s.queue, policy.Lane{LaneConcurrency: 4})
		require.Len(s, a.claimAs(a.first, 3), 3)
		s.putLane(s.queue, policy.Lane{LaneConcurrency: 8})
		require.Len(s, a.claimAs(a.second, 3), 1, "the jobs of both are below the limit")
		require.Empty(s, a.claimAs(a.first, 3))
	}},
	{"an expired lease does not count", withMovedClock(func(s *suite) {
		a := s.ahead(policy.Topic{})
		request := claimFor(s.shortTime(), s.queue)
		request.Queues[0].Max = 1
		_, err := s.shard().Claim(s.Context(), a.second.NewToken(), request)
		require.NoError(s, err)
		jobs := a.claimAs(a.first, 3)
		require.Len(s, jobs, 1)
		s.advance(s.shortTime() + time.Millisecond)
		s.expireLeases(1)
		require.Len(s, a.claimAs(a.first, 3), 4)
		a.settleAll(jobs)
		require.Empty(s, a.claimAs(a.second, 3))
	})},
	{"a lease of ClaimExpired counts as any other", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 2, Paused: true})
		s.insertNew(s.entry("expires", expires(s.shortTime())))
		s.advance(2 * s.shortTime())
		a := s.ahead(policy.Topic{})
		jobs := a.claimAs(a.first, 3)
		require.Len(s, jobs, 5)
		for i, h := range jobs[:4] {
			if h.ID == "expires" {
				jobs[i], jobs[4] = jobs[4], jobs[i]
			}
		}
		a.settleAll(jobs[:3])
		s.settleOne(jobs[4], retry(0))
		over := s.claimExpired(a.second.NewToken(), allExpired)
		require.Len(s, over, 1)
		require.Empty(s, a.claimAs(a.first, 3))
		s.settleOne(over[0], dead)
		require.Len(s, a.claimAs(a.first, 3), 4)
		require.Empty(s, a.claimAs(a.second, 3))
	}},
	{"lanes of one claim are counted apart", func(s *suite) {
		a := s.ahead(policy.Topic{})
		for i := range 8 {
			s.insertNew(s.entry(fmt.Sprint("other-", i), in(s.laneQueue(1))))
		}
		require.Len(s, a.claimAs(a.second, 0), 2)
		request := claimOf(s.queue, s.laneQueue(1))
		request.Queues[0].Ahead, request.Queues[1].Ahead = 3, 4
		got, err := s.shard().Claim(s.Context(), a.first.NewToken(), request)
		require.NoError(s, err)
		require.Len(s, got.Jobs, 6)
		for _, h := range got.Jobs {
			require.Equal(s, s.laneQueue(1), h.Queue)
		}
	}},
}
