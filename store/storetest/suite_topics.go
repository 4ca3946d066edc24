package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

var topicCases = []testCase{
	{"PutTopic stores the policy as given", func(s *suite) {
		put := store.Topic{Namespace: s.queue.Namespace, Name: s.queue.Topic, Policy: policy.Topic{
			Ladder: policy.Ladder{time.Second}, Retries: new(0), Jitter: new(0.0), Timeout: time.Second, MaxAge: long,
			Workers: 3, LaneConcurrency: 4, URL: "http://topic.example/",
			Headers:  map[string][]string{"X-A": {"1", "2"}},
			GiveUpOn: []string{}, KeepDelivered: keep(0), KeepDead: policy.Retention{For: new(time.Duration(0))},
			IDWindow: new(time.Duration(0)), Paused: true,
		}, Updated: policy.Update{At: time.Date(2026, 3, 1, 12, 30, 15, int(250*time.Millisecond),
			time.UTC), By: "Zoë \"'"}}
		answer, err := store.PutTopic(s.Context(), s.Store, put)
		require.NoError(s, err)
		require.NotZero(s, answer.Revision)
		put.Revision = answer.Revision
		require.Equal(s, put, answer)
		sparse, err := store.PutTopic(s.Context(), s.Store, store.Topic{Namespace: s.queue.Namespace, Name: "a-sparse"})
		require.NoError(s, err)
		theirs, err := store.PutTopic(s.Context(), s.Store, store.Topic{Namespace: "a-namespace", Name: "z"})
		require.NoError(s, err)
		topics, _, err := ListTopics(s.Context(), s.Store)
		require.NoError(s, err)
		require.Equal(s, []store.Topic{theirs, sparse, put}, topics)
	}},
	{"refuses another revision than the stored one", func(s *suite) {
		topic := store.Topic{Namespace: s.queue.Namespace, Name: s.queue.Topic, Revision: 99}
		_, err := store.PutTopic(s.Context(), s.Store, topic)
		require.ErrorIs(s, err, store.ErrVersion)
		topic.Revision = store.MustNotExist
		_, err = store.PutTopic(s.Context(), s.Store, topic)
		require.NoError(s, err, "nothing is stored yet")
		_, err = store.PutTopic(s.Context(), s.Store, topic)
		require.ErrorIs(s, err, store.ErrVersion, "they are stored now")
		first := s.put(policy.Topic{Workers: 1})
		first.Policy.Workers = 2
		second, err := store.PutTopic(s.Context(), s.Store, first)
		require.NoError(s, err)
		require.NotEqual(s, first.Revision, second.Revision)
		_, err = store.PutTopic(s.Context(), s.Store, first)
		require.ErrorIs(s, err, store.ErrVersion)
		third := s.put(policy.Topic{Workers: 3})
		require.NotEqual(s, second.Revision, third.Revision)
		topics, _, err := ListTopics(s.Context(), s.Store)
		require.NoError(s, err)
		require.Equal(s, []store.Topic{third}, topics)
	}},
	{"a paused topic accepts jobs and does not notify", func(s *suite) {
		s.put(policy.Topic{Paused: true})
		s.insertNew(s.entry("a"))
		if s.Advance != nil {
			s.Advance(2 * store.RenotifyAfter)
		}
		s.carry(store.CarryOptions{})
		require.Empty(s, s.claim(claimOf(s.queue)).Jobs)
		require.Equal(s, job.Ready, s.get("a").State)
	}},
	{"a resumed topic notifies due queues within a second", func(s *suite) {
		s.put(policy.Topic{Paused: true})
		s.insertNew(s.entry("a"), s.entry("b", in(s.laneQueue(1))))
		s.carry(store.CarryOptions{})
		s.drainWakeups()
		start := s.now()
		s.put(policy.Topic{})
		if s.Advance != nil {
			s.Advance(store.RenotifyAfter)
		}
		notified := make(map[job.Queue]bool)
		s.eventually("both queues", func() bool {
			s.carry(store.CarryOptions{})
			for _, q := range s.wait(time.Millisecond) {
				notified[q] = true
			}
			return notified[s.laneQueue(0)] && notified[s.laneQueue(1)]
		})
		if s.Advance != nil { // else it may be a slow machine
			require.Less(s, s.now().Sub(start), 3*time.Second)
		}
	}},
	{"a topic paused after its wake-up is notified when it is resumed", func(s *suite) {
		s.insertNew(s.entry("a"))
		s.drainWakeups()
		s.put(policy.Topic{Paused: true})
		s.carry(store.CarryOptions{})
		if s.Advance != nil {
			s.Advance(2 * store.RenotifyAfter)
		}
		s.carry(store.CarryOptions{})
		s.drainWakeups()
		s.put(policy.Topic{})
		s.waitNotified(s.queue)
		s.claimAll("a")
	}},
	{"a removed policy pauses no longer", func(s *suite) {
		put := s.put(policy.Topic{Paused: true})
		s.insertNew(s.entry("a"))
		s.carry(store.CarryOptions{})
		s.drainWakeups()
		require.Empty(s, s.claim(claimOf(s.queue)).Jobs)
		stale := put
		stale.Revision++
		require.ErrorIs(s, store.DeleteTopic(s.Context(), s.Store, stale), store.ErrVersion)
		require.NoError(s, store.DeleteTopic(s.Context(), s.Store, put))
		topics, revision, err := ListTopics(s.Context(), s.Store)
		require.NoError(s, err)
		require.Empty(s, topics)
		require.Greater(s, revision, put.Revision)
		if s.Advance != nil {
			s.Advance(store.RenotifyAfter)
		}
		s.carry(store.CarryOptions{})
		s.waitNotified(s.queue)
		s.claimAll("a")
		put.Revision = store.MustNotExist
		require.NoError(s, store.DeleteTopic(s.Context(), s.Store, put), "a removal may be repeated")
	}},
	{"a raised lane_concurrency notifies waiting queues", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 1})
		s.insertNew(s.entry("a"), s.entry("b"))
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 1)
		s.carry(store.CarryOptions{})
		s.drainWakeups()
		s.put(policy.Topic{LaneConcurrency: 2})
		s.waitNotified(s.queue)
		require.Len(s, s.claim(claimOf(s.queue)).Jobs, 1)
	}},
	{"a pause affects no other topic or namespace", func(s *suite) {
		s.put(policy.Topic{Paused: true})
		other := s.queueOf(s.queue.Namespace, "other", 0)
		theirs := s.queueOf("other", s.queue.Topic, 0)
		s.insertNew(s.entry("a", in(other)), s.entry("b", in(theirs)))
		require.Len(s, s.claim(claimOf(other, theirs)).Jobs, 2)
	}},
	{"the next job of a claimed queue moves the agenda", withMovedClock(func(s *suite) {
		s.insertNew(s.entry("a"))
		s.waitNotified(s.queue)
		s.insertNew(s.entry("b", delayed(store.RenotifyAfter*3/4))) // before the wake-up is repeated
		s.carry(store.CarryOptions{})
		s.drainWakeups()
		s.claimAll("a")
		s.requireAgendaMoved("the next job is due before the wake-up is repeated")
	})},
	{"a job that comes due notifies though its queue was notified just before", withMovedClock(func(s *suite) {
		s.insertNew(s.entry("a"))
		s.waitNotified(s.queue)
		s.claimAll("a")
		s.insertNew(s.entry("b", delayed(store.RenotifyAfter/20)))
		s.carry(store.CarryOptions{})
		s.drainWakeups()
		s.advance(store.RenotifyAfter / 20)
		s.insertNew(s.entry("c", delayed(time.Hour)))
		c := s.carry(store.CarryOptions{})
		require.Equal(s, []job.Queue{s.queue}, s.wait(store.RenotifyAfter/2), "%+v", c)
	})},
}
