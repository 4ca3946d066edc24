package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// listen waits in the background and sends the result on the channel.
func (s *suite) listen(ctx context.Context, watch store.WaitOptions) <-chan wakeupOrErr {
	watch.Groups = []string{store.GroupPush}
	answer := make(chan wakeupOrErr, 1)
	go func() {
		wakeup, err := s.shard().Wait(ctx, watch)
		answer <- wakeupOrErr{wakeup, err}
	}()
	return answer
}

type wakeupOrErr struct {
	queues []job.Queue
	err    error
}

// receive receives a result that must come.
func (s *suite) receive(answer <-chan wakeupOrErr) wakeupOrErr {
	s.Helper()
	select {
	case got := <-answer:
		return got
	case <-time.After(timeLimit):
		require.FailNow(s, "Wait did not return")
		return wakeupOrErr{}
	}
}

// waitAgenda reports whether the agenda has a new head, or has one within a duration.
func (s *suite) waitAgenda(wait time.Duration) bool { return s.waitAgendaOf(s.shard(), wait) }

func (s *suite) waitAgendaOf(shard store.Keeper, wait time.Duration) bool {
	s.Helper()
	moved, err := shard.WaitAgenda(s.Context(), wait)
	require.NoError(s, err)
	return moved
}

// requireAgendaMoved waits until an earlier head of the agenda is reported.
func (s *suite) requireAgendaMoved(what string) {
	s.Helper()
	s.eventually("a moved agenda: "+what, func() bool { return s.waitAgenda(time.Second) })
}

var wakeupCases = []testCase{
	{"Wait returns an empty wake-up and no error on timeout", func(s *suite) {
		start := time.Now()
		wakeup := s.wait(shortWait)
		require.Empty(s, wakeup)
		require.GreaterOrEqual(s, time.Since(start), shortWait/2)
		require.Less(s, time.Since(start), timeLimit)
	}},
	{"Wait returns when a queue is notified", func(s *suite) {
		answer := s.listen(s.Context(), store.WaitOptions{Timeout: timeLimit})
		s.insertNew(s.entry("a"))
		got := s.receive(answer)
		require.NoError(s, got.err)
		require.Equal(s, []job.Queue{s.queue}, got.queues)
	}},
	{"Wait returns when its context ends", func(s *suite) {
		ctx, cancel := context.WithCancel(s.Context())
		answer := s.listen(ctx, store.WaitOptions{Timeout: time.Minute})
		cancel()
		got := s.receive(answer)
		require.ErrorIs(s, got.err, context.Canceled)
	}},
	{"Wait returns at most Max queues", func(s *suite) {
		queues := make(map[job.Queue]bool)
		for i := range 5 {
			queues[s.laneQueue(i)] = true
			s.insertNew(s.entry(s.laneQueue(i).Lane, in(s.laneQueue(i))))
		}
		for len(queues) > 0 {
			wakeup, err := s.shard().Wait(s.Context(),
				store.WaitOptions{Groups: []string{store.GroupPush}, Max: 2, Timeout: timeLimit})
			require.NoError(s, err)
			require.NotEmpty(s, wakeup)
			require.LessOrEqual(s, len(wakeup), 2)
			for _, q := range wakeup {
				require.True(s, queues[q], "%v was returned twice", q)
				delete(queues, q)
			}
		}
	}},
	{"a lost wake-up is repeated after RenotifyAfter", func(s *suite) {
		s.insertNew(s.entry("a"))
		require.Len(s, s.wait(timeLimit), 1)
		if s.Advance != nil {
			s.carry(store.CarryOptions{})
			require.Empty(s, s.wait(time.Millisecond))
			s.Advance(store.RenotifyAfter)
			s.carry(store.CarryOptions{})
			require.Equal(s, []job.Queue{s.queue}, s.wait(timeLimit))
			return
		}
		s.waitNotified(s.queue)
	}},
	{"a claimed queue is not notified again", func(s *suite) {
		s.insertNew(s.entry("a"))
		s.drainWakeups()
		s.claimAll("a")
		s.advance(s.shortTime())
		if s.Advance != nil {
			s.Advance(2 * store.RenotifyAfter)
		}
		s.carry(store.CarryOptions{})
		require.Empty(s, s.wait(shortWait))
	}},
	{"Notify returns a queue to other listeners", func(s *suite) {
		s.insertNew(s.entry("a"))
		require.Len(s, s.wait(timeLimit), 1)
		require.NoError(s, s.shard().Notify(s.Context(), []job.Queue{s.queue}))
		require.Equal(s, []job.Queue{s.queue}, s.wait(timeLimit))
	}},
	{"a queue is pending once", func(s *suite) {
		s.insertNew(s.entry("a"))
		require.NoError(s, s.shard().Notify(s.Context(), []job.Queue{s.queue, s.queue}))
		s.insertNew(s.entry("b"))
		require.Equal(s, []job.Queue{s.queue}, s.wait(timeLimit))
		require.Empty(s, s.wait(time.Millisecond))
	}},
	{"an earlier due time moves the agenda, a later one does not", func(s *suite) {
		s.insertNew(s.entry("later", delayed(2*long)))
		s.carry(store.CarryOptions{})
		s.drainWakeups()
		s.insertNew(s.entry("latest", in(s.laneQueue(1)), delayed(3*long)))
		require.False(s, s.waitAgenda(shortWait))
		moved := make(chan bool, 1)
		go func() { moved <- s.waitAgenda(timeLimit) }()
		s.insertNew(s.entry("earlier", in(s.laneQueue(2)), delayed(long)))
		require.True(s, <-moved)
	}},
	{"the first due time moves the agenda", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		s.requireAgendaMoved("the first job")
	}},
	{"an edit and a settlement move the agenda", func(s *suite) {
		s.insertNew(s.entry("a", delayed(3*long)), s.entry("b", in(s.laneQueue(1))))
		h := s.claim(claimFor(4*long, s.laneQueue(1))).Jobs[0]
		s.carry(store.CarryOptions{})
		s.drainWakeups()
		_, err := s.replace("a", store.Replacement{Due: &job.TimeOrDelay{In: 2 * long}})
		require.NoError(s, err)
		s.requireAgendaMoved("an edit")
		s.drainWakeups()
		s.settleOne(h, retry(long))
		s.requireAgendaMoved("a settlement")
	}},
	{"WaitAgenda takes no wake-up of a queue, and Wait none of the agenda", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		s.insertNew(s.entry("b", in(s.laneQueue(1))))
		require.Equal(s, []job.Queue{s.laneQueue(1)}, s.wait(timeLimit))
		require.NoError(s, s.shard().Notify(s.Context(), []job.Queue{s.laneQueue(1)}))
		s.requireAgendaMoved("the first job")
		require.Equal(s, []job.Queue{s.laneQueue(1)}, s.wait(timeLimit))
		ctx, cancel := context.WithCancel(s.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.shard().WaitAgenda(ctx, timeLimit)
			ended <- err
		}()
		cancel()
		require.ErrorIs(s, <-ended, context.Canceled)
	}},
	{"Lead has one holder", func(s *suite) {
		first, err := s.shard().Lead(s.Context())
		require.NoError(s, err)
		_, err = s.shard().Lead(s.Context())
		require.ErrorIs(s, err, store.ErrNotLeader)
		require.NoError(s, first.Extend(s.Context()))
		require.NoError(s, first.Release(s.Context()))
		second, err := s.shard().Lead(s.Context())
		require.NoError(s, err)
		require.ErrorIs(s, first.Extend(s.Context()), store.ErrNotLeader)
		require.NoError(s, second.Extend(s.Context()))
		if err := first.Release(s.Context()); err != nil {
			require.ErrorIs(s, err, store.ErrNotLeader)
		}
		require.NoError(s, second.Extend(s.Context()), "a release by an earlier holder changes nothing")
		_, err = s.shard().Carry(s.Context(), store.NewToken(), store.CarryOptions{Lead: first})
		require.ErrorIs(s, err, store.ErrNotLeader)
		_, err = s.shard().Carry(s.Context(), store.NewToken(), store.CarryOptions{Lead: second})
		require.NoError(s, err)
		require.NoError(s, second.Release(s.Context()))
	}},
	{"Lead is per shard", func(s *suite) {
		for shard := range s.Store.Shards() {
			lead, err := s.Store.Shards()[shard].Lead(s.Context())
			require.NoError(s, err)
			defer func() { require.NoError(s, lead.Release(s.Context())) }()
		}
	}},
	{"Carry extends the lead", func(s *suite) {
		if s.Advance == nil {
			return // the clock is not the test's
		}
		lead, err := s.shard().Lead(s.Context())
		require.NoError(s, err)
		for range 3 {
			s.Advance(store.LeadershipTTL * 2 / 3)
			_, err = s.shard().Carry(s.Context(), store.NewToken(), store.CarryOptions{Lead: lead})
			require.NoError(s, err)
			_, err = s.shard().Lead(s.Context())
			require.ErrorIs(s, err, store.ErrNotLeader)
		}
		require.NoError(s, lead.Release(s.Context()))
	}},
	{"Lead expires unless it is extended", func(s *suite) {
		if s.Advance == nil && testing.Short() {
			return // it waits for LeadershipTTL
		}
		lost, err := s.shard().Lead(s.Context())
		require.NoError(s, err)
		if s.Advance != nil {
			s.Advance(store.LeadershipTTL + time.Millisecond)
		}
		s.eventually("the lock", func() bool {
			_, err = s.shard().Lead(s.Context())
			return err == nil
		})
		require.ErrorIs(s, lost.Extend(s.Context()), store.ErrNotLeader)
	}},
}
