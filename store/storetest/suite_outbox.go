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

// outboxIDs returns the ids in the outbox of a shard.
func (s *suite) outboxIDs(shard int) []string {
	s.Helper()
	c, err := s.Store.Shards()[shard].Carry(s.Context(), store.NewToken(), store.CarryOptions{})
	require.NoError(s, err)
	var ids []string
	for _, e := range c.Outbox {
		ids = append(ids, e.ID)
	}
	return ids
}

// alarm sets the alarm of the test's topic, on the shard that keeps the topic.
func (s *suite) alarm(token store.Token, raised bool, jobs ...store.NewJob) bool {
	s.Helper()
	changed, err := s.Store.Shards()[s.topicShard()].Alarm(s.Context(), token, store.Alarm{
		Namespace: s.queue.Namespace, Topic: s.queue.Topic, Raised: raised, Outbox: jobs,
	})
	require.NoError(s, err)
	return changed
}

// topicShard returns the number of the shard that keeps the test's topic.
func (s *suite) topicShard() int { return s.router.ShardOfTopic(s.queue.Namespace, s.queue.Topic) }

var relayCases = []testCase{
	{"drops the outbox of a settlement that ends as cancelled", func(s *suite) {
		for _, v := range []struct {
			id      string
			verdict policy.Verdict
			relayed bool
		}{
			{"again", retry(long), false},
			{"dead", dead, false},
			{"released", released, false},
			{"delivered", delivered, true},
		} {
			s.insertNew(s.entry(v.id))
			h := s.claimAll(v.id)[0]
			_, err := s.cancel(v.id)
			require.NoError(s, err)
			item := settlement(h, v.verdict)
			item.Outbox = []store.NewJob{s.entry("child of " + v.id)}
			require.NoError(s, s.settle(item)[0])
			var wanted []string
			if v.relayed {
				wanted = []string{"child of " + v.id}
			}
			require.Equal(s, wanted, s.outboxIDs(s.shardNumber), v.id)
		}
	}},
	{"every verdict can add jobs", func(s *suite) {
		var wanted []string
		for _, v := range []policy.Verdict{retry(long), dead, released, delivered} {
			id := v.Kind.String()
			s.insertNew(s.entry(id))
			item := settlement(s.claimAll(id)[0], v)
			item.Outbox = []store.NewJob{s.entry("child of " + id)}
			require.NoError(s, s.settle(item)[0])
			if v.Kind == policy.Released {
				_, err := s.cancel(id)
				require.NoError(s, err)
			}
			wanted = append(wanted, "child of "+id)
		}
		require.Equal(s, wanted, s.outboxIDs(s.shardNumber))
	}},
	{"a new entry moves the agenda", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claimAll("a")[0]
		s.carry(store.CarryOptions{})
		s.drainWakeups()
		item := settlement(h, delivered)
		item.Outbox = []store.NewJob{s.entry("child", delayed(long))}
		require.NoError(s, s.settle(item)[0])
		s.requireAgendaMoved("an outbox entry")
	}},
	{"keeps every field of a job", func(s *suite) {
		s.insertNew(s.entry("a"))
		item := settlement(s.claimAll("a")[0], delivered)
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

var outboxCases = []testCase{
	{"respects OutboxBytes, but returns at least one job", func(s *suite) {
		wanted := s.fillOutbox(7, 300<<10)
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
		s.eventually("nothing more to do",
			func() bool { return s.carry(store.CarryOptions{SkipOutbox: len(ids)}).Next != 0 })
	}},
	{"has a default limit in bytes", func(s *suite) {
		s.fillOutbox(40, 300<<10)
		got := s.carry(store.CarryOptions{})
		require.NotEmpty(s, got.Outbox)
		require.LessOrEqual(s, len(got.Outbox), store.OutboxBytes/(300<<10))
		require.Zero(s, got.Next)
	}},
	{"SkipOutbox entries do not delay those behind them", func(s *suite) {
		wanted := s.fillOutbox(store.MaxBatch+20, 0)
		got := s.carry(store.CarryOptions{SkipOutbox: 5})
		require.Len(s, got.Outbox, store.MaxBatch)
		require.Equal(s, wanted[5], got.Outbox[0].ID)
		home := []job.Ref{{Namespace: s.queue.Namespace, ID: wanted[0]}, {Namespace: s.queue.Namespace, ID: wanted[7]}}
		got = s.carry(store.CarryOptions{SkipOutbox: store.MaxBatch, Relayed: home})
		require.Len(s, got.Outbox, 18, "SkipOutbox does not count relayed entries")
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

// fillOutbox settles a job with n outbox jobs of a body size, and returns their ids in order.
func (s *suite) fillOutbox(n, size int) (ids []string) {
	s.Helper()
	s.insertNew(s.entry("parent"))
	item := settlement(s.claimAll("parent")[0], delivered)
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

var alarmCases = []testCase{
	{"adds its jobs when it is raised and when it is cleared", func(s *suite) {
		require.False(s, s.alarm(store.NewToken(), false, s.entry("never")), "nothing was raised")
		require.True(s, s.alarm(store.NewToken(), true, s.entry("raised"), s.entry("raised, too")))
		require.False(s, s.alarm(store.NewToken(), true, s.entry("again")))
		require.True(s, s.alarm(store.NewToken(), false, s.entry("over")))
		require.False(s, s.alarm(store.NewToken(), false, s.entry("over again")))
		s.advance(2 * time.Millisecond)
		require.True(s, s.alarm(store.NewToken(), true, s.entry("second")))
		require.Equal(s, []string{"raised", "raised, too", "over", "second"}, s.outboxIDs(s.topicShard()))
	}},
	{"its jobs are complete, move the agenda and go when they are relayed", func(s *suite) {
		shard := s.topicShard()
		e := s.entry("callback", delayed(long))
		e.Spec = fullSpec("callback", s.laneQueue(1))
		e.Fingerprint = codec.Fingerprint(&e.New)
		s.eventually("no more wake-ups",
			func() bool { return !s.waitAgendaOf(s.Store.Shards()[shard], time.Millisecond) })
		require.True(s, s.alarm(store.NewToken(), true, e))
		s.eventually("a moved agenda", func() bool { return s.waitAgendaOf(s.Store.Shards()[shard], time.Second) })
		c, err := s.Store.Shards()[shard].Carry(s.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(s, err)
		require.Len(s, c.Outbox, 1)
		require.Equal(s, e.Spec, c.Outbox[0].Spec)
		require.Equal(s, e.Fingerprint, c.Outbox[0].Fingerprint)
		require.Equal(s, e.Delay, c.Outbox[0].Delay)
		s.insertNew(c.Outbox...)
		_, err = s.Store.Shards()[shard].Carry(s.Context(), store.NewToken(),
			store.CarryOptions{Relayed: []job.Ref{e.Ref()}})
		require.NoError(s, err)
		require.Empty(s, s.outboxIDs(shard))
		require.Equal(s, e.Spec, s.get("callback").Spec)
	}},
	{"a repeated token returns the first result and adds its jobs once", func(s *suite) {
		token := store.NewToken()
		for range 3 {
			require.True(s, s.alarm(token, true, s.entry("raised")))
		}
		require.Equal(s, []string{"raised"}, s.outboxIDs(s.topicShard()))
		require.True(s, s.alarm(store.NewToken(), false))
		require.True(s, s.alarm(token, true, s.entry("raised")), "the first result is returned")
		require.False(s, s.alarm(store.NewToken(), false), "a repeated call changes nothing")
	}},
	{"belongs to one topic, with or without jobs", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		shard, token := s.topicShard(), store.NewToken()
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
	{"state survives a restart", func(s *suite) {
		if s.Reopen == nil {
			return // the engine cannot be reopened
		}
		require.True(s, s.alarm(store.NewToken(), true, s.entry("raised")))
		s.Store = s.Reopen()
		require.False(s, s.alarm(store.NewToken(), true, s.entry("again")))
		require.Equal(s, []string{"raised"}, s.outboxIDs(s.topicShard()))
		require.True(s, s.alarm(store.NewToken(), false))
		s.Store = s.Reopen()
		require.False(s, s.alarm(store.NewToken(), false))
	}},
}
