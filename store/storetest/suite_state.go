package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// queueState returns the state of the test's queue.
func (s *suite) queueState() store.QueueState {
	s.Helper()
	state, err := s.shard().QueueState(s.Context(), s.queue)
	require.NoError(s, err)
	require.Equal(s, s.queue.Lane, state.Lane)
	return state
}

// topicState returns the state of the test's topic, over all shards.
func (s *suite) topicState(rate policy.Rate) store.TopicState {
	s.Helper()
	state, err := s.router.TopicState(s.Context(), s.queue.Namespace, s.queue.Topic, rate)
	require.NoError(s, err)
	return state
}

var stateCases = []testCase{
	{"a queue's counts and throttles are those of LaneStats", func(s *suite) {
		for i, throttle := range throttles {
			s.Log(throttle.name)
			s.queue = s.laneQueue(i)
			s.put(policy.Topic{})
			throttle.apply(s)
			s.insertNew(s.entry("due-"+throttle.name), s.entry("later-"+throttle.name, delayed(long)))
			require.Equal(s, s.laneStats(s.queue), s.queueState().LaneStats)
		}
	}},
	{"NextStart is when the lane's rate allows a start", withMovedClock(func(s *suite) {
		rate := policy.Rate{Starts: 2, Per: s.shortTime()}
		s.rated(4, rate)
		require.Zero(s, s.queueState().NextStart)
		first := s.claim(s.claimWithSlack(1, 0)).Jobs[0]
		require.Zero(s, s.queueState().NextStart, "one start is left")
		s.claim(s.claimWithSlack(1, s.shortTime()))
		s.sameTime(claimed(first).Add(rate.Per), s.queueState().NextStart, "NextStart")
		s.putLane(s.queue, policy.Lane{LaneRate: policy.Rate{Starts: 3, Per: rate.Per}})
		require.Zero(s, s.queueState().NextStart, "the lane's own rate allows three")
		s.putLane(s.queue, policy.Lane{})
		until := s.queueState().NextStart
		s.advance(max(0, until.Sub(s.now())) + 2*time.Millisecond)
		require.Zero(s, s.queueState().NextStart, "the first start has left the window")
		require.Len(s, s.claim(s.claimWithSlack(2, 0)).Jobs, 1)
	})},
	{"a lane without a rate has no NextStart", func(s *suite) {
		s.rated(2, policy.Rate{Starts: 1, Per: long})
		s.claim(claimOf(s.queue))
		require.NotZero(s, s.queueState().NextStart)
		s.put(policy.Topic{})
		require.Zero(s, s.queueState().NextStart)
	}},
	{"Led while the carrier lock is held", func(s *suite) {
		s.insertNew(s.entry("a"))
		require.False(s, s.queueState().Led)
		lead, err := s.shard().Lead(s.Context())
		require.NoError(s, err)
		require.True(s, s.queueState().Led)
		require.NoError(s, lead.Release(s.Context()))
		require.False(s, s.queueState().Led)
		if s.Advance == nil {
			return // it waits for LeadershipTTL
		}
		_, err = s.shard().Lead(s.Context())
		require.NoError(s, err)
		s.advance(store.LeadershipTTL + 2*time.Millisecond)
		require.False(s, s.queueState().Led, "the lock of a process that died")
	}},
	{"a topic's running jobs are those of all lanes", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b", in(s.laneQueue(1))), s.entry("c"))
		require.Zero(s, s.topicState(policy.Rate{}).Running)
		request := claimOf(s.queue, s.laneQueue(1))
		request.Queues[0].Max = 1
		jobs := s.claim(request).Jobs
		require.Len(s, jobs, 2)
		require.EqualValues(s, 2, s.topicState(policy.Rate{}).Running)
		s.settleOne(jobs[0], delivered)
		require.EqualValues(s, 1, s.topicState(policy.Rate{}).Running)
	}},
	{"a topic's NextStart is when its rate grants a start", func(s *suite) {
		rate := policy.Rate{Starts: 3, Per: long}
		s.insertNew(s.entry("a"))
		require.Zero(s, s.topicState(rate).NextStart)
		s.permit(s.ask(s.queue.Topic, rate, 2))
		require.Zero(s, s.topicState(rate).NextStart, "one start is left")
		p := s.permit(s.ask(s.queue.Topic, rate, 2))
		s.sameTime(p.At.Add(p.Next), s.topicState(rate).NextStart, "NextStart")
		require.Zero(s, s.topicState(policy.Rate{Starts: 4, Per: long}).NextStart, "a larger rate")
		require.Zero(s, s.topicState(policy.Rate{}).NextStart, "no rate")
	}},
	{"queues and topics without jobs have a state", func(s *suite) {
		require.Zero(s, s.queueState().Running)
		require.Zero(s, s.topicState(policy.Rate{Starts: 1, Per: long}))
		other := job.Queue{Namespace: "other", Topic: "unknown", Lane: "unknown"}
		_, err := s.shard().QueueState(s.Context(), other)
		require.NoError(s, err)
	}},
	{"reading states changes nothing", func(s *suite) {
		s.openBreaker(2)
		s.insertNew(s.entry("later", delayed(long)))
		before := s.laneStats(s.queue)
		for range 3 {
			s.queueState()
			s.topicState(policy.Rate{Starts: 1, Per: long})
		}
		require.Equal(s, before, s.laneStats(s.queue))
		s.probe(claimOf(s.queue))
		require.True(s, s.queueState().BreakerOpen, "while the probe is in flight")
		require.EqualValues(s, 1, s.queueState().Running)
	}},
}
