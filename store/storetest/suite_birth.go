package storetest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// born are the ids that stand in the outbox of a shard.
func (s *suite) born(shard int) []string {
	s.Helper()
	c, err := s.Store.Shards()[shard].Carry(s.Context(), store.NewToken(), store.CarryOptions{})
	require.NoError(s, err)
	var ids []string
	for _, e := range c.Outbox {
		ids = append(ids, e.ID)
	}
	return ids
}

// alarm notes the alarm of the test's topic, on the shard that keeps the topic.
func (s *suite) alarm(token store.Token, raised bool, births ...store.NewJob) bool {
	s.Helper()
	changed, err := s.Store.Shards()[s.keeper()].Alarm(s.Context(), token, store.Alarm{
		Namespace: s.queue.Namespace, Topic: s.queue.Topic, Raised: raised, Outbox: births,
	})
	require.NoError(s, err)
	return changed
}

// keeper is the shard of the test's topic.
func (s *suite) keeper() int { return s.router.ShardOfTopic(s.queue.Namespace, s.queue.Topic) }

var birthCases = []sentence{
	{"births are dropped when a cancel mark ends the job otherwise than the verdict says", func(s *suite) {
		for _, v := range []struct {
			id      string
			verdict policy.Verdict
			born    bool
		}{
			{"again", again(long), false},
			{"dead", dead, false},
			{"released", released, false},
			{"delivered", delivered, true},
		} {
			s.add(s.entry(v.id))
			h := s.hold(v.id)[0]
			_, err := s.cancel(v.id)
			require.NoError(s, err)
			item := settlement(h, v.verdict)
			item.Outbox = []store.NewJob{s.entry("child of " + v.id)}
			require.NoError(s, s.settle(item)[0])
			var wanted []string
			if v.born {
				wanted = []string{"child of " + v.id}
			}
			require.Equal(s, wanted, s.born(s.shardNumber), v.id)
		}
	}},
	{"whatever way an attempt ends, it may give birth", func(s *suite) {
		var wanted []string
		for _, v := range []policy.Verdict{again(long), dead, released, delivered} {
			id := v.Kind.String()
			s.add(s.entry(id))
			item := settlement(s.hold(id)[0], v)
			item.Outbox = []store.NewJob{s.entry("child of " + id)}
			require.NoError(s, s.settle(item)[0])
			if v.Kind == policy.Released {
				_, err := s.cancel(id)
				require.NoError(s, err)
			}
			wanted = append(wanted, "child of "+id)
		}
		require.Equal(s, wanted, s.born(s.shardNumber))
	}},
	{"births wake who brings them home", func(s *suite) {
		s.add(s.entry("a"))
		h := s.hold("a")[0]
		s.carry(store.CarryOptions{})
		s.quiet()
		item := settlement(h, delivered)
		item.Outbox = []store.NewJob{s.entry("child", delayed(long))}
		require.NoError(s, s.settle(item)[0])
		s.wakes("a birth")
	}},
	{"a birth keeps whom to tell of its own end", func(s *suite) {
		s.add(s.entry("a"))
		item := settlement(s.hold("a")[0], delivered)
		child := s.entry("child", delayed(long))
		child.Spec = fullSpec("child", s.queue)
		child.Fingerprint = codec.Fingerprint(&child.New)
		item.Outbox = []store.NewJob{child}
		require.NoError(s, s.settle(item)[0])
		out := s.carry(store.CarryOptions{}).Outbox
		require.Len(s, out, 1)
		require.Equal(s, child.Spec, out[0].Spec)
	}},
}

var outboxCases = []sentence{
	{"what the outbox hands out is bounded in bytes, and the first always fits", func(s *suite) {
		wanted := s.bear(7, 300<<10)
		got := s.carry(store.CarryOptions{OutboxBytes: 1})
		require.Len(s, got.Outbox, 1)
		require.Equal(s, 1, got.OutboxRead)
		require.Zero(s, got.Next, "there is more at once")
		var ids []string
		for rounds := 0; len(ids) < len(wanted); rounds++ {
			require.Less(s, rounds, 7)
			got = s.carry(store.CarryOptions{OutboxBytes: 1 << 20, SkipOutbox: len(ids)})
			require.LessOrEqual(s, len(got.Outbox), 3, "of 300 KiB each")
			require.NotEmpty(s, got.Outbox)
			for _, e := range got.Outbox {
				require.Len(s, e.Body, 300<<10)
				ids = append(ids, e.ID)
			}
		}
		require.Equal(s, wanted, ids)
		s.eventually("nothing more to do", func() bool { return s.carry(store.CarryOptions{SkipOutbox: len(ids)}).Next != 0 })
	}},
	{"the outbox hands out no more than its bytes where a round does not say", func(s *suite) {
		s.bear(40, 300<<10)
		got := s.carry(store.CarryOptions{})
		require.NotEmpty(s, got.Outbox)
		require.LessOrEqual(s, len(got.Outbox), store.OutboxBytes/(300<<10))
		require.Zero(s, got.Next)
	}},
	{"entries that are passed over hold up none behind them", func(s *suite) {
		wanted := s.bear(store.MaxBatch+20, 0)
		got := s.carry(store.CarryOptions{SkipOutbox: 5})
		require.Len(s, got.Outbox, store.MaxBatch)
		require.Equal(s, wanted[5], got.Outbox[0].ID)
		home := []job.Ref{{Namespace: s.queue.Namespace, ID: wanted[0]}, {Namespace: s.queue.Namespace, ID: wanted[7]}}
		got = s.carry(store.CarryOptions{SkipOutbox: store.MaxBatch, Relayed: home})
		require.Len(s, got.Outbox, 18, "those that are home count no more")
		require.Equal(s, wanted[store.MaxBatch+2], got.Outbox[0].ID)
		require.Equal(s, 18, got.OutboxRead)
		for _, skip := range []int{store.MaxBatch + 18, 10_000} {
			s.eventually("nothing more to do", func() bool {
				got = s.carry(store.CarryOptions{SkipOutbox: skip})
				return got.Next != 0
			})
			require.Empty(s, got.Outbox)
			require.Zero(s, got.OutboxRead)
		}
	}},
}

// bear settles a job that gives birth to n others with bodies of that size, and answers their ids, in order.
func (s *suite) bear(n, size int) (ids []string) {
	s.Helper()
	s.add(s.entry("parent"))
	item := settlement(s.hold("parent")[0], delivered)
	for i := range n {
		e := s.entry(fmt.Sprintf("child-%04d", i), delayed(long))
		if size > 0 {
			e.BodyKind, e.Body = job.BodyText, bytes.Repeat([]byte{'x'}, size)
		}
		item.Outbox, ids = append(item.Outbox, e), append(ids, e.ID)
	}
	require.NoError(s, s.settle(item)[0])
	return ids
}

var alarmCases = []sentence{
	{"an alarm changes when it is raised and when it is over, and gives birth each time", func(s *suite) {
		require.False(s, s.alarm(store.NewToken(), false, s.entry("never")), "nothing was raised")
		require.True(s, s.alarm(store.NewToken(), true, s.entry("raised"), s.entry("raised, too")))
		require.False(s, s.alarm(store.NewToken(), true, s.entry("again")))
		require.True(s, s.alarm(store.NewToken(), false, s.entry("over")))
		require.False(s, s.alarm(store.NewToken(), false, s.entry("over again")))
		s.pass(2 * time.Millisecond)
		require.True(s, s.alarm(store.NewToken(), true, s.entry("second")))
		require.Equal(s, []string{"raised", "raised, too", "over", "second"}, s.born(s.keeper()))
	}},
	{"the births of an alarm come whole, wake, and go when they are home", func(s *suite) {
		shard := s.keeper()
		e := s.entry("told", delayed(long))
		e.Spec = fullSpec("told", s.lane(1))
		e.Fingerprint = codec.Fingerprint(&e.New)
		s.eventually("silence", func() bool {
			rung, err := s.Store.Shards()[shard].Wait(s.Context(), store.WaitOptions{Group: store.GroupPush, Agenda: true, Timeout: time.Millisecond})
			require.NoError(s, err)
			return !rung.AgendaMoved
		})
		require.True(s, s.alarm(store.NewToken(), true, e))
		s.eventually("a wake", func() bool {
			rung, err := s.Store.Shards()[shard].Wait(s.Context(), store.WaitOptions{Group: store.GroupPush, Agenda: true, Timeout: time.Second})
			require.NoError(s, err)
			return rung.AgendaMoved
		})
		c, err := s.Store.Shards()[shard].Carry(s.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(s, err)
		require.Len(s, c.Outbox, 1)
		require.Equal(s, e.Spec, c.Outbox[0].Spec)
		require.Equal(s, e.Fingerprint, c.Outbox[0].Fingerprint)
		require.Equal(s, e.Delay, c.Outbox[0].Delay)
		s.add(c.Outbox...)
		_, err = s.Store.Shards()[shard].Carry(s.Context(), store.NewToken(), store.CarryOptions{Relayed: []job.Ref{e.Ref()}})
		require.NoError(s, err)
		require.Empty(s, s.born(shard))
		require.Equal(s, e.Spec, s.get("told").Spec)
	}},
	{"a repeated token answers as the first call did, and gives birth once", func(s *suite) {
		token := store.NewToken()
		for range 3 {
			require.True(s, s.alarm(token, true, s.entry("raised")))
		}
		require.Equal(s, []string{"raised"}, s.born(s.keeper()))
		require.True(s, s.alarm(store.NewToken(), false))
		require.True(s, s.alarm(token, true, s.entry("raised")), "the answer is the first one")
		require.False(s, s.alarm(store.NewToken(), false), "a repeat does nothing")
	}},
	{"an alarm is its topic's own, whether the topic has jobs or not", func(s *suite) {
		s.add(s.entry("a", delayed(long)))
		shard, token := s.keeper(), store.NewToken()
		for i, a := range []store.Alarm{
			{Namespace: s.queue.Namespace, Topic: s.queue.Topic},
			{Namespace: "other", Topic: s.queue.Topic},
			{Namespace: s.queue.Namespace, Topic: "unused"},
		} {
			a.Raised = true
			changed, err := s.Store.Shards()[shard].Alarm(s.Context(), token+store.Token(rune('a'+i)), a)
			require.NoError(s, err)
			require.True(s, changed, "%+v", a)
		}
	}},
	{"an alarm outlives the process", func(s *suite) {
		if s.Reopen == nil {
			return // an engine without a second life has nothing to show here
		}
		require.True(s, s.alarm(store.NewToken(), true, s.entry("raised")))
		s.Store = s.Reopen()
		require.False(s, s.alarm(store.NewToken(), true, s.entry("again")))
		require.Equal(s, []string{"raised"}, s.born(s.keeper()))
		require.True(s, s.alarm(store.NewToken(), false))
		s.Store = s.Reopen()
		require.False(s, s.alarm(store.NewToken(), false))
	}},
}
