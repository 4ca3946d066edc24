package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

var carryCases = []testCase{
	{"moves due jobs and notifies", func(s *suite) {
		s.insertNew(s.entry("a", delayed(s.shortTime())), s.entry("later", delayed(long)))
		s.carry(store.CarryOptions{})
		s.drainWakeups()
		s.advance(s.shortTime())
		s.waitNotified(s.queue)
		s.claimAll("a")
	}},
	{"returns how many jobs it moved", func(s *suite) {
		for i := range 3 {
			s.insertNew(s.entry(fmt.Sprint(i), delayed(s.shortTime())))
		}
		require.Zero(s, s.carry(store.CarryOptions{}).Moved)
		s.advance(s.shortTime() + time.Millisecond)
		moved := 0
		s.eventually("three moves", func() bool {
			moved += s.carry(store.CarryOptions{}).Moved
			return moved == 3
		})
	}},
	{"Next is the time until the next due job", func(s *suite) {
		require.Negative(s, s.carry(store.CarryOptions{}).Next, "an empty agenda")
		s.insertNew(s.entry("a", delayed(2*long)), s.entry("b", delayed(long), in(s.laneQueue(1))))
		require.InDelta(s, long, s.carry(store.CarryOptions{}).Next, float64(s.tolerance()))
		_, err := s.cancel("b")
		require.NoError(s, err)
		next := s.carry(store.CarryOptions{}).Next
		require.Greater(s, next, time.Duration(0))
		require.LessOrEqual(s, next, 2*long+time.Second)
	}},
	{"Next is the end of a lease", func(s *suite) {
		s.insertNew(s.entry("a", timeout(20*time.Minute)))
		s.claimAll("a")
		require.InDelta(s, 20*time.Minute, s.carry(store.CarryOptions{}).Next, float64(s.tolerance()))
	}},
	{"Next is RenotifyAfter after a wake-up", func(s *suite) {
		s.insertNew(s.entry("a"))
		s.carry(store.CarryOptions{})
		next := s.carry(store.CarryOptions{}).Next
		require.GreaterOrEqual(s, next, time.Duration(0))
		require.LessOrEqual(s, next, store.RenotifyAfter+time.Millisecond)
	}},
	{"a blocked queue has no Next", func(s *suite) {
		s.put(policy.Topic{Paused: true})
		s.insertNew(s.entry("a"))
		s.carry(store.CarryOptions{})
		next := s.carry(store.CarryOptions{}).Next
		require.True(s, next < 0 || next >= long, "Next is %v", next)
	}},
	{"returns the store's clock", func(s *suite) {
		s.sameTime(s.now(), s.carry(store.CarryOptions{}).Now, "Now")
	}},
	{"respects its limits and returns Next 0 when more is due", func(s *suite) {
		for i := range 12 {
			s.insertNew(s.entry(fmt.Sprint(i), in(s.laneQueue(i%4)), delayed(s.shortTime())))
		}
		s.advance(s.shortTime() + time.Millisecond)
		got := s.carry(store.CarryOptions{Jobs: 2})
		require.LessOrEqual(s, got.Moved, 2)
		require.Zero(s, got.Next)
		got = s.carry(store.CarryOptions{Queues: 1})
		require.LessOrEqual(s, got.Moved, 3)
		require.Zero(s, got.Next)
		s.eventually("wake-ups of all", func() bool { return s.carry(store.CarryOptions{}).Next > 0 })
		require.Len(s, s.wait(timeLimit), 4)
		require.Len(s, s.claim(claimOf(s.laneQueue(0), s.laneQueue(1), s.laneQueue(2), s.laneQueue(3))).Jobs, 12)
	}},
	{"a repeated token returns the first result", func(s *suite) {
		s.insertNew(s.entry("a", delayed(s.shortTime())))
		s.insertNew(s.entry("parent", in(s.laneQueue(1))))
		h := s.claim(claimOf(s.laneQueue(1))).Jobs[0]
		item := settlement(h, delivered)
		item.Outbox = []store.NewJob{s.entry("child")}
		require.NoError(s, s.settle(item)[0])
		s.advance(s.shortTime() + time.Millisecond)
		token := store.NewToken()
		first, err := s.shard().Carry(s.Context(), token, store.CarryOptions{})
		require.NoError(s, err)
		require.Equal(s, 1, first.Moved)
		require.Len(s, first.Outbox, 1)
		second, err := s.shard().Carry(s.Context(), token, store.CarryOptions{})
		require.NoError(s, err)
		require.Equal(s, first.Moved, second.Moved)
		require.Equal(s, first.ExpiredLeases, second.ExpiredLeases)
		require.Len(s, second.Outbox, 1)
		require.Equal(s, first.Outbox[0].ID, second.Outbox[0].ID)
	}},
	{"many retries of a queue do not delay other queues", func(s *suite) {
		var entries []store.NewJob
		for i := range 300 {
			entries = append(entries, s.entry(fmt.Sprintf("retry-%d", i), delayed(s.shortTime())))
		}
		s.insertNew(entries...)
		s.insertNew(s.entry("first", in(s.laneQueue(1)), delayed(s.shortTime())))
		s.advance(s.shortTime() + time.Millisecond)
		for range 20 {
			s.carry(store.CarryOptions{Jobs: 50})
		}
		s.waitNotified(s.laneQueue(1))
		require.Len(s, s.claim(claimOf(s.laneQueue(1))).Jobs, 1)
	}},
	{"relays a large outbox in batches", func(s *suite) {
		n := store.MaxBatch + 10
		s.insertNew(s.entry("parent"))
		item := settlement(s.claimAll("parent")[0], delivered)
		for i := range n {
			item.Outbox = append(item.Outbox, s.entry(fmt.Sprintf("child-%d", i), delayed(long)))
		}
		require.NoError(s, s.settle(item)[0])
		got := s.carry(store.CarryOptions{})
		require.Zero(s, got.Next)
		for n > 0 {
			require.Len(s, got.Outbox, min(n, store.MaxBatch))
			s.insertNew(got.Outbox...)
			var home []job.Ref
			for _, e := range got.Outbox {
				home = append(home, e.Ref())
			}
			n -= len(home)
			got = s.carry(store.CarryOptions{Relayed: home})
		}
		require.Empty(s, got.Outbox)
	}},
}
