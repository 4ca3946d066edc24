package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
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

// groupOf is the group of the test's topic when it is delivered in a way.
func (s *suite) groupOf(deliver policy.Deliver) string {
	return store.GroupOf(s.queue.Namespace, s.queue.Topic, deliver)
}

// claimBy claims from the test's queue for a caller that delivers in a way.
func (s *suite) claimBy(deliver policy.Deliver) ([]store.ClaimedJob, store.QueueStatus) {
	s.Helper()
	request := claimFor(long, s.queue)
	request.Queues[0].Deliver = deliver
	claimed := s.claim(request)
	return claimed.Jobs, claimed.Queues[0]
}

// unreadWakeup is a case for a topic with its group.
func unreadWakeup(p policy.Topic) func(s *suite) {
	return func(s *suite) {
		if s.Advance == nil {
			return
		}
		group, queues := s.groupOf(p.Deliver), []job.Queue{s.queue, s.laneQueue(1)}
		s.put(p)
		s.insertNew(s.entry("a"), s.entry("b", in(queues[1])))
		look := func() time.Duration {
			s.carry(store.CarryOptions{})
			return s.carry(store.CarryOptions{}).Next
		}
		s.Advance(look())
		for i := range 9 { // some more than a minute
			require.Equal(s, store.RenotifyUnreadAfter, look())
			s.Advance(store.RenotifyUnreadAfter / 2)
			s.insertNew(s.entry(fmt.Sprint(i)))
			require.Equal(s, store.RenotifyUnreadAfter/2, look(), "another job changes nothing")
			s.Advance(store.RenotifyUnreadAfter / 2)
		}
		require.ElementsMatch(s, queues, s.waitIn(group, timeLimit))
		require.Empty(s, s.waitIn(group, time.Millisecond))
		look()
		require.ElementsMatch(s, queues, s.waitIn(group, timeLimit), "it was lost")
		s.Advance(store.RenotifyAfter)
		look()
		require.ElementsMatch(s, queues, s.waitIn(group, timeLimit), "it was lost soon after it was sent")
	}
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
			queues, _ := s.shard().Wait(s.Context(),
				store.WaitOptions{Groups: []string{store.GroupInternal}, Timeout: timeLimit})
			internal <- queues
		}()
		s.insertNew(s.entry("own", in(own)))
		require.Equal(s, []job.Queue{own}, <-internal)
		s.insertNew(s.entry("a"))
		require.Equal(s, []job.Queue{s.queue}, s.receive(push).queues)
	}},
	{"a claim gets jobs of topics that are delivered as the caller does only", func(s *suite) {
		ways := []policy.Deliver{policy.DeliverPush, policy.DeliverPull, policy.DeliverHandler}
		for i, deliver := range ways {
			id := string(deliver)
			s.insertNew(s.entry(id))
			s.put(policy.Topic{Deliver: deliver})
			for k, other := range ways {
				if k == i {
					continue
				}
				jobs, status := s.claimBy(other)
				require.Empty(s, jobs, "%s, claimed by %s", deliver, other)
				require.False(s, status.More || status.Blocked, "%s, claimed by %s", deliver, other)
			}
			jobs, _ := s.claimBy(deliver)
			require.Equal(s, []string{id}, idsOf(jobs))
			s.settleOne(jobs[0], delivered)
		}
		s.put(policy.Topic{})
		s.insertNew(s.entry("default"))
		jobs, _ := s.claimBy("")
		require.Equal(s, []string{"default"}, idsOf(jobs), "a topic is pushed by default")
	}},
	{"a lane's own settings do not change how its topic is delivered", func(s *suite) {
		s.put(policy.Topic{Deliver: policy.DeliverPull})
		s.putLane(s.queue, policy.Lane{LaneConcurrency: 1})
		s.insertNew(s.entry("a"))
		jobs, _ := s.claimBy(policy.DeliverPush)
		require.Empty(s, jobs)
		require.Equal(s, []job.Queue{s.queue}, s.waitIn(s.groupOf(policy.DeliverPull), timeLimit))
		jobs, _ = s.claimBy(policy.DeliverPull)
		require.Len(s, jobs, 1)
	}},
	{"a topic with a separate group wakes nobody else", func(s *suite) {
		for _, deliver := range []policy.Deliver{policy.DeliverPull, policy.DeliverHandler} {
			s.put(policy.Topic{Deliver: deliver})
			s.insertNew(s.entry(string(deliver)))
			require.Empty(s, s.waitIn(store.GroupPush, time.Millisecond))
			require.Empty(s, s.waitIn(store.GroupOf(s.queue.Namespace, "another", deliver), time.Millisecond))
			require.Equal(s, []job.Queue{s.queue}, s.waitIn(s.groupOf(deliver), timeLimit))
			jobs, _ := s.claimBy(deliver)
			s.settleOne(jobs[0], delivered)
		}
	}},
	{"one wait serves several groups", func(s *suite) {
		s.put(policy.Topic{Deliver: policy.DeliverHandler})
		other := s.queueOf(s.queue.Namespace, "another", 0)
		groups := []string{store.GroupPush, s.groupOf(policy.DeliverHandler), s.groupOf(policy.DeliverPull)}
		found := make(chan []job.Queue, 1)
		go func() {
			queues, _ := s.shard().Wait(s.Context(), store.WaitOptions{Groups: groups, Timeout: timeLimit})
			found <- queues
		}()
		s.insertNew(s.entry("a"))
		require.Equal(s, []job.Queue{s.queue}, <-found)
		s.insertNew(s.entry("b"), s.entry("other", in(other)))
		woken := make(map[job.Queue]bool)
		for range 2 {
			queues, err := s.shard().Wait(s.Context(), store.WaitOptions{Groups: groups, Timeout: shortWait})
			require.NoError(s, err)
			for _, q := range queues {
				woken[q] = true
			}
		}
		require.True(s, woken[other])
	}},
	{"a topic that is delivered in another way wakes its new group", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"))
		old := s.claim(claimFor(long, s.queue)).Jobs
		require.Len(s, old, 2)
		s.settleOne(old[0], released)
		s.wait(shortWait)
		for _, deliver := range []policy.Deliver{policy.DeliverPull, policy.DeliverHandler, policy.DeliverPush} {
			s.put(policy.Topic{Deliver: deliver})
			changed := s.now()
			s.eventually("a wake-up of group "+s.groupOf(deliver), func() bool {
				if s.Advance != nil {
					s.Advance(store.RenotifyAfter)
				}
				s.carry(store.CarryOptions{})
				return len(s.waitIn(s.groupOf(deliver), time.Millisecond)) > 0
			})
			if s.Advance != nil { // else it may be a slow machine
				require.Less(s, s.now().Sub(changed), 2*store.RenotifyAfter)
			}
		}
		s.put(policy.Topic{Deliver: policy.DeliverPull})
		s.settleOne(old[1], delivered) // an attempt in flight ends as it began
		jobs, _ := s.claimBy(policy.DeliverPull)
		require.Equal(s, []string{old[0].ID}, idsOf(jobs))
	}},
	{"a queue for which nobody waits is in its group once", func(s *suite) {
		group := s.groupOf(policy.DeliverPull)
		s.put(policy.Topic{Deliver: policy.DeliverPull})
		other := s.laneQueue(1)
		s.insertNew(s.entry("a"), s.entry("b", in(other)))
		again := func() {
			require.NoError(s, s.shard().Notify(s.Context(), []job.Queue{s.queue, other}))
			_, err := s.cancel("a")
			require.NoError(s, err)
			_, err = s.revive("a", 0)
			require.NoError(s, err)
			s.carry(store.CarryOptions{})
		}
		again()
		require.ElementsMatch(s, []job.Queue{s.queue, other}, s.waitIn(group, timeLimit))
		require.Empty(s, s.waitIn(group, time.Millisecond))
		s.advance(2 * time.Millisecond)
		again()
		require.ElementsMatch(s, []job.Queue{s.queue, other}, s.waitIn(group, timeLimit), "they were received")
		require.Empty(s, s.waitIn(group, time.Millisecond))
	}},
	{
		"a wake-up that nobody receives is kept, and looked at rarely",
		unreadWakeup(policy.Topic{Deliver: policy.DeliverPull}),
	},
	{"so is that of an ordered queue", unreadWakeup(policy.Topic{Deliver: policy.DeliverHandler, Ordered: true})},
	{"many queues for which nobody waits are looked at rarely", func(s *suite) {
		if s.Advance == nil {
			return
		}
		queues, inRound := testkit.Of(200, 1000), testkit.Of(100, 500)
		s.put(policy.Topic{Deliver: policy.DeliverPull})
		var entries []store.NewJob
		for i := 0; len(entries) < queues; i++ {
			q := s.queue
			q.Lane = fmt.Sprintf("lane-%04d.example:80", i)
			if s.router.ShardOf(q) == s.shardNumber {
				entries = append(entries, s.entry(q.Lane, in(q)))
			}
		}
		for part := range slices.Chunk(entries, inRound) {
			s.insertNew(part...)
		}
		round := func() time.Duration { return s.carry(store.CarryOptions{Queues: inRound}).Next }
		for round() == 0 { // the policy has changed
		}
		begin, rounds := s.now(), 0
		for s.now().Sub(begin) < 2*store.RenotifyUnreadAfter {
			s.Advance(round())
			rounds++
		}
		require.Less(s, rounds, 4*queues/inRound,
			"each queue is looked at after RenotifyAfter, and then every RenotifyUnreadAfter")
		found := make(map[job.Queue]bool)
		for {
			some := s.waitIn(s.groupOf(policy.DeliverPull), time.Millisecond)
			if len(some) == 0 {
				break
			}
			for _, q := range some {
				require.False(s, found[q], "%s is there twice", q)
				found[q] = true
			}
		}
		require.Len(s, found, queues)
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
