package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// settleSome inserts jobs of the test's lane with a prefix, and settles them in one call, the delivered ones first.
func (s *suite) settleSome(prefix string, deliveries, failures int) store.ClaimResult {
	s.Helper()
	var entries []store.NewJob
	for i := range deliveries + failures {
		entries = append(entries, s.entry(fmt.Sprint(prefix, i)))
	}
	s.insertNew(entries...)
	request := claimOf(s.queue)
	var items []store.Settlement
	for i, h := range s.claim(request).Jobs {
		verdict := delivered
		if i >= deliveries {
			verdict = retry(100 * long)
		}
		items = append(items, settlement(h, verdict))
	}
	require.Len(s, items, deliveries+failures)
	_, got, err := s.shard().Settle(s.Context(), store.NewToken(), items, &request)
	require.NoError(s, err)
	return got
}

// listHealth returns the lanes of the test's topic that have health.
func (s *suite) listHealth(limit int) []store.LaneHealth {
	s.Helper()
	f := store.HealthFilter{Namespace: s.queue.Namespace, Topic: s.queue.Topic, Limit: limit}
	all, err := s.shard().ListHealth(s.Context(), f)
	require.NoError(s, err)
	f.Topic = ""
	of, err := s.shard().ListHealth(s.Context(), f)
	require.NoError(s, err)
	require.Equal(s, all, of)
	f.Topic = "another"
	none, err := s.shard().ListHealth(s.Context(), f)
	require.NoError(s, err)
	require.Empty(s, none)
	return all
}

var healthCases = []testCase{
	{"begins with the first failure of a lane", func(s *suite) {
		require.Empty(s, s.settleSome("a", 3, 0).Health)
		require.Empty(s, s.listHealth(10))
		got := s.settleSome("b", 1, 2).Health
		require.Len(s, got, 1)
		require.Equal(s, s.queue, got[0].Queue)
		require.Nil(s, got[0].Before)
		h := got[0].After
		require.Equal(s, policy.HealthCount{Delivered: 1, Failed: 2}, h.Minutes[0], "one change for all")
		require.Equal(s, []int64{3, 2, 0}, []int64{h.Attempts, h.Failed, h.InRow})
		require.Equal(s, policy.Failure{JobID: h.Failure.JobID, At: h.Last, Status: 500}, h.Failure)
		require.Contains(s, []string{"b0", "b1", "b2"}, h.Failure.JobID)
		require.Equal(s, h, s.laneStats(s.queue).Health)
		require.Equal(s, h, s.queueState().Health)
		require.Equal(s, []store.LaneHealth{{Queue: s.queue, Health: h}}, s.listHealth(10))
		got = s.settleSome("c", 0, 3).Health
		require.Equal(s, h, got[0].Before)
		require.EqualValues(s, 3, got[0].After.InRow)
		was, is := got[0].Failing()
		require.False(s, was)
		require.True(s, is)
		require.Equal(s, got[0].After, s.settleSome("d", 1, 0).Health[0].Before)
	}},
	{"releases, extensions and refused settlements do not count", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"), s.entry("c"))
		jobs := s.claimAll("a", "b", "c")
		dead := settlement(jobs[0], policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExpired})
		dead.Attempt.Kind = ""
		stale := settlement(jobs[1], retry(0))
		stale.Lease = store.NewToken()
		s.settle(dead, stale, extension(jobs[1], long), settlement(jobs[2], released))
		require.Empty(s, s.listHealth(10))
		lost := settlement(jobs[1], retry(0))
		lost.Attempt.Status, lost.Attempt.ErrorClass = 0, policy.ClassTimeoutHeaders
		s.settle(lost)
		require.Equal(s, policy.ClassTimeoutHeaders, s.listHealth(10)[0].Health.Failure.Class)
		require.Equal(s, "b", s.listHealth(10)[0].Health.Failure.JobID)
	}},
	{"lanes are listed in order of their first failure", func(s *suite) {
		var wanted []string
		for i := range 3 {
			s.queue = s.laneQueue(2 - i)
			s.settleSome(fmt.Sprint("j", i, "-"), 0, 1)
			wanted = append(wanted, s.queue.Lane)
			s.advance(3 * time.Millisecond)
		}
		for limit, some := range [][]string{{}, wanted[:1], wanted[:2], wanted, wanted} {
			lanes := []string{}
			for _, l := range s.listHealth(limit) {
				lanes = append(lanes, l.Queue.Lane)
			}
			require.Equal(s, some, lanes)
		}
		s.queue = s.laneQueue(1) // the second
		last := s.settleSome("more-", 0, 2).Health[0].After.Last
		failing, err := s.shard().ListHealth(s.Context(),
			store.HealthFilter{Namespace: s.queue.Namespace, FailingAt: last, Limit: 1})
		require.NoError(s, err)
		require.Len(s, failing, 1, "others that do not fail take no place")
		require.Equal(s, s.queue, failing[0].Queue)
	}},
	{"a repeat answers as the first, and a claim without settlements has none", func(s *suite) {
		s.insertNew(s.entry("a"))
		request, token := claimOf(s.queue), store.NewToken()
		items := []store.Settlement{settlement(s.claimAll("a")[0], retry(long))}
		for range 2 {
			_, got, err := s.shard().Settle(s.Context(), token, items, nil)
			require.NoError(s, err)
			require.EqualValues(s, 1, got.Health[0].After.Attempts)
		}
		require.Empty(s, s.claim(request).Health)
		require.EqualValues(s, 1, s.queueState().Health.Attempts)
	}},
	{"ends after an hour of deliveries only", func(s *suite) {
		if s.Advance == nil {
			return // it takes hours
		}
		s.settleSome("a", 0, 1)
		for i := range 5 {
			s.Advance(12*time.Minute - time.Millisecond)
			require.NotEmpty(s, s.settleSome(fmt.Sprint("b", i, "-"), 1, 0).Health)
		}
		s.Advance(time.Second)
		got := s.settleSome("c", 1, 0).Health
		require.Len(s, got, 1)
		require.Nil(s, got[0].After)
		require.Empty(s, s.listHealth(10))
		require.Empty(s, s.settleSome("d", 1, 0).Health)
	}},
	{"counts by minutes, and begins a series", func(s *suite) {
		if s.Advance == nil {
			return // it takes minutes
		}
		s.settleSome("a", 2, 1)
		s.Advance(2 * time.Minute)
		h := s.settleSome("b", 0, 1).Health[0].After
		require.Equal(s, [5]policy.HealthCount{{Failed: 1}, {}, {Delivered: 2, Failed: 1}}, h.Minutes)
		require.Equal(s, h.Last, h.Since)
		s.Advance(10 * time.Minute)
		h = s.settleSome("c", 0, 1).Health[0].After
		require.Equal(s, [5]policy.HealthCount{{Failed: 1}}, h.Minutes)
		require.EqualValues(s, 2, h.InRow)
	}},
}
