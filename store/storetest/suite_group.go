package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// internalTopic is a topic of store.GroupInternal.
const internalTopic = "_own"

// waitIn returns the queues of a group that are notified within a duration.
func (s *suite) waitIn(group string, timeout time.Duration) []job.Queue {
	s.Helper()
	queues, err := s.shard().Wait(s.Context(), store.WaitOptions{Groups: []string{group}, Timeout: timeout})
	require.NoError(s, err)
	return queues
}

var groupCases = []testCase{
	{"a wake-up reaches the waits of its group only", func(s *suite) {
		own := s.queueOf(job.DefaultNamespace, internalTopic, 0)
		callbacks := s.queueOf(job.DefaultNamespace, job.CallbackTopic, 1)
		s.insertNew(s.entry("own", in(own)))
		require.Empty(s, s.waitIn(store.GroupPush, shortWait))
		s.insertNew(s.entry("a"), s.entry("callback", in(callbacks)))
		require.Equal(s, []job.Queue{own}, s.waitIn(store.GroupInternal, timeLimit))
		require.ElementsMatch(s, []job.Queue{s.queue, callbacks}, s.waitIn(store.GroupPush, timeLimit))
		require.Empty(s, s.waitIn(store.GroupInternal, shortWait))

		require.NoError(s, s.shard().Notify(s.Context(), []job.Queue{own, s.queue}))
		require.Equal(s, []job.Queue{s.queue}, s.waitIn(store.GroupPush, timeLimit))
		require.Equal(s, []job.Queue{own}, s.waitIn(store.GroupInternal, timeLimit))
	}},
	{"a job that comes due wakes its group only", func(s *suite) {
		own := s.queueOf(job.DefaultNamespace, internalTopic, 0)
		s.insertNew(s.entry("own", in(own), delayed(s.shortTime())), s.entry("a", delayed(s.shortTime())))
		s.advance(s.shortTime())
		var woken []job.Queue
		s.eventually("wake-ups", func() bool {
			s.carry(store.CarryOptions{})
			woken = append(woken, s.waitIn(store.GroupInternal, time.Millisecond)...)
			return len(woken) > 0
		})
		require.Equal(s, own, woken[0])
		require.Equal(s, []job.Queue{s.queue}, s.waitIn(store.GroupPush, timeLimit))
	}},
	{"two waits of a shard, one of each group, are served at once", func(s *suite) {
		own := s.queueOf(job.DefaultNamespace, internalTopic, 0)
		push := s.listen(s.Context(), store.WaitOptions{Timeout: timeLimit})
		internal := make(chan []job.Queue, 1)
		go func() {
			queues, _ := s.shard().Wait(s.Context(), store.WaitOptions{Groups: []string{store.GroupInternal}, Timeout: timeLimit})
			internal <- queues
		}()
		s.insertNew(s.entry("own", in(own)))
		require.Equal(s, []job.Queue{own}, <-internal)
		s.insertNew(s.entry("a"))
		require.Equal(s, []job.Queue{s.queue}, s.receive(push).queues)
	}},
	{"internal jobs are counted only when their topic is named", func(s *suite) {
		own := s.queueOf(job.DefaultNamespace, internalTopic, 0)
		s.put(policy.Topic{})
		s.insertNew(s.entry("a"), s.entry("own", in(own)), s.entry("own-later", in(own), delayed(long)))
		s.insertNew(s.entry("z", in(s.queueOf(job.DefaultNamespace, "zebras", 0))))
		page := func(filter store.StatsFilter) (names []string) {
			filter.Namespace = job.DefaultNamespace
			rows, err := s.shard().TopicStats(s.Context(), filter)
			require.NoError(s, err)
			for _, row := range rows {
				names = append(names, row.Topic)
			}
			return names
		}
		require.Equal(s, []string{s.queue.Topic, "zebras"}, page(store.StatsFilter{Limit: 10}))
		require.Equal(s, []string{s.queue.Topic}, page(store.StatsFilter{Limit: 1}))
		require.Equal(s, []string{s.queue.Topic}, page(store.StatsFilter{After: "Z", Limit: 1}), "a page is full")
		require.Equal(s, []string{internalTopic}, page(store.StatsFilter{Topics: []string{internalTopic}}))
		total, err := s.shard().Totals(s.Context(), job.DefaultNamespace)
		require.NoError(s, err)
		require.EqualValues(s, 2, total.Registered)
		require.EqualValues(s, 2, total.Ready)
		usage, err := s.shard().Usage(s.Context(), job.DefaultNamespace)
		require.NoError(s, err)
		require.EqualValues(s, 2, usage.Jobs)
		require.Zero(s, total.Scheduled)
	}},
	{"Sweep adds no internal topic to the totals", func(s *suite) {
		own := s.entry("own", in(s.queueOf(job.DefaultNamespace, internalTopic, 0)))
		own.Fingerprint = nil // its id is not remembered
		s.insertNew(own)
		s.settleOne(s.claim(claimFor(long, own.Queue)).Jobs[0], dead)
		errs, err := s.shard().Purge(s.Context(), store.NewToken(), []store.Removal{{Ref: own.Ref()}})
		require.NoError(s, err)
		require.NoError(s, errs[0])
		for range 3 {
			if s.Advance != nil {
				s.Advance(24 * time.Hour)
			}
			s.sweep()
		}
		total, err := s.shard().Totals(s.Context(), job.DefaultNamespace)
		require.NoError(s, err)
		require.Zero(s, total.Registered)
	}},
}
