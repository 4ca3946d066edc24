package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// history returns the history of the test's topic, which is that of its namespace.
func (s *suite) history() store.History {
	s.Helper()
	topics := []string{"another", s.queue.Topic, store.AllTopics}
	all, err := s.shard().ReadHistory(s.Context(), s.queue.Namespace, topics)
	require.NoError(s, err)
	require.Len(s, all, 3)
	require.Equal(s, store.History{Topic: "another"}, all[0])
	all[2].Topic = s.queue.Topic
	require.Equal(s, all[1], all[2])
	return all[1]
}

// sum adds up buckets.
func sum(all []store.HistoryBucket) (sum store.HistoryCounts) {
	for i := range all {
		sum.Add(&all[i].HistoryCounts)
	}
	return sum
}

var historyCases = []testCase{
	{"counts what became of attempts, by minute and hour", func(s *suite) {
		require.Empty(s, s.history().Hours)
		s.insertNew(s.entry("a"), s.entry("b"), s.entry("c"), s.entry("d"), s.entry("e"), s.entry("f"))
		jobs := s.claimAll("a", "b", "c", "d", "e", "f")
		stale := settlement(jobs[0], delivered)
		stale.Lease = store.NewToken()
		s.settle(stale, extension(jobs[0], long))
		require.Empty(s, s.history().Hours)
		expired := settlement(jobs[3], policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExpired})
		expired.Attempt.Kind = ""
		items := []store.Settlement{
			settlement(jobs[0], delivered), settlement(jobs[1], retry(long)),
			settlement(jobs[2], policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted}), expired,
			settlement(jobs[4], released), settlement(jobs[5], delivered),
		}
		items[0].Late, items[1].Late, items[5].Late = 5*time.Millisecond, 30*time.Millisecond, time.Hour
		token := store.NewToken()
		for range 2 { // a repeat counts once
			_, _, err := s.shard().Settle(s.Context(), token, items, nil)
			require.NoError(s, err)
		}
		got := s.history()
		require.Equal(s, store.HistoryCounts{
			Delivered: 2, Failed: 2, Dead: 2, Released: 1, Late: [9]int64{2, 0, 1, 0, 0, 0, 0, 0, 1},
		}, sum(got.Hours))
		require.Equal(s, sum(got.Hours), sum(got.Minutes))
		require.WithinDuration(s, s.now(), got.Minutes[0].At, time.Minute+s.tolerance())
		require.WithinDuration(s, s.now(), got.Hours[0].At, time.Hour+s.tolerance())
	}},
	{"a cancelled job does not die, and jobs of Ringback's own do not count", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claimAll("a")[0]
		_, err := s.cancel("a")
		require.NoError(s, err)
		s.settleOne(h, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted})
		require.Equal(s, store.HistoryCounts{Failed: 1, Late: [9]int64{1}}, sum(s.history().Hours))
		before, name := s.history(), s.queue
		s.queue = s.queueOf(name.Namespace, "_work", 0)
		s.insertNew(s.entry("b"))
		s.settleOne(s.claimAll("b")[0], delivered)
		s.queue = name
		require.Equal(s, before, s.history())
	}},
	{"has a history of some lanes with health", func(s *suite) {
		name := s.queue
		lane := func(n int) job.Queue { return s.queueOf(name.Namespace, name.Topic, n) }
		settle := func(n int, prefix string, deliveries, failures int) {
			s.queue = lane(n)
			s.settleSome(fmt.Sprint(prefix, n, "-"), deliveries, failures)
			s.queue = name
		}
		read := func(n int) store.HistoryCounts {
			all, err := s.shard().ReadHistory(s.Context(), name.Namespace, []string{store.LaneHistory(lane(n))})
			require.NoError(s, err)
			return sum(all[0].Hours)
		}
		settle(0, "a", 2, 0)
		require.Zero(s, read(0), "no attempt failed")
		for n := range store.MaxLaneHistories + 1 {
			settle(n, "b", 1, 2)
		}
		settle(0, "c", 3, 0)
		require.Equal(s, store.HistoryCounts{Delivered: 4, Failed: 2}, read(0))
		require.Equal(s, store.HistoryCounts{Delivered: 1, Failed: 2}, read(store.MaxLaneHistories-1))
		require.Zero(s, read(store.MaxLaneHistories), "others have the places")
		if s.Advance == nil {
			return // it takes an hour
		}
		s.Advance(61 * time.Minute)
		settle(store.MaxLaneHistories, "d", 0, 1)
		require.Equal(s, store.HistoryCounts{Failed: 1}, read(store.MaxLaneHistories))
	}},
	{"has the last hour by minutes, and two days by hours", func(s *suite) {
		if s.Advance == nil {
			return // it takes days
		}
		deliver := func(n int) {
			s.insertNew(s.entry(fmt.Sprint("j", n)))
			s.settleOne(s.claimAll(fmt.Sprint("j", n))[0], delivered)
		}
		n := 0
		for range 90 { // an hour and a half
			deliver(n)
			s.Advance(time.Minute)
			n++
		}
		h := s.history()
		got := h.Recent(s.now())
		require.Len(s, got.Minutes, store.HistoryMinutes-1) // none in the minute that has begun
		require.EqualValues(s, 90, sum(got.Hours).Delivered)
		for range 60 {
			s.Advance(time.Hour)
			s.sweep()
			deliver(n)
			n++
		}
		h = s.history()
		got = h.Recent(s.now())
		require.Len(s, got.Minutes, 1)
		require.Len(s, got.Hours, store.HistoryHours)
		require.EqualValues(s, store.HistoryHours, sum(got.Hours).Delivered)
		require.LessOrEqual(s, len(h.Hours)+len(h.Minutes), store.HistoryHours+store.HistoryMinutes+4, "it is bounded")
	}},
}
