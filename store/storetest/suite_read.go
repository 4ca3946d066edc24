package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// filter returns a filter of the test's topic, oldest jobs first.
func (s *suite) filter(state job.State) store.Filter {
	return store.Filter{Namespace: s.queue.Namespace, Topic: s.queue.Topic, States: []job.State{state}, Oldest: true}
}

// oneEach brings one job into each state, with the state as its id.
func (s *suite) oneEach() {
	s.Helper()
	s.endJob("delivered", delivered)
	s.endJob("dead", dead)
	s.insertNew(s.entry("cancelled", delayed(long)))
	_, err := s.cancel("cancelled")
	require.NoError(s, err)
	s.insertNew(s.entry("running"))
	s.claimAll("running")
	s.insertNew(s.entry("ready"), s.entry("scheduled", delayed(long)))
}

var states = []job.State{job.Scheduled, job.Ready, job.Running, job.Delivered, job.Dead, job.Cancelled}

var readCases = []testCase{
	{"Get of an unknown job returns ErrNotFound", func(s *suite) {
		require.True(s, s.isGone("unknown"))
	}},
	{"Get and List show a due job as ready before a carrier moves it", func(s *suite) {
		s.insertNew(s.entry("a", delayed(s.shortTime())))
		if s.Advance != nil { // else it may be due already
			require.Equal(s, job.Scheduled, s.get("a").State)
			require.Equal(s, []string{"a"}, idsOfJobs(s.list(s.filter(job.Scheduled))))
		}
		s.advance(s.shortTime() + 2*time.Millisecond)
		require.Equal(s, job.Ready, s.get("a").State)
		require.Equal(s, []string{"a"}, idsOfJobs(s.list(s.filter(job.Ready))))
		require.Empty(s, s.list(s.filter(job.Scheduled)))
		s.carry(store.CarryOptions{})
		require.Equal(s, job.Ready, s.get("a").State)
		require.Equal(s, []string{"a"}, idsOfJobs(s.list(s.filter(job.Ready))))
	}},
	{"List returns the jobs of a state", func(s *suite) {
		s.oneEach()
		for _, state := range states {
			got := s.list(s.filter(state))
			require.Equal(s, []string{string(state)}, idsOfJobs(got))
			require.Equal(s, state, got[0].State)
			require.Equal(s, state, s.get(string(state)).State)
		}
		require.Empty(s, s.list(store.Filter{Namespace: s.queue.Namespace, Topic: "other"}))
	}},
	{"List omits body and history", func(s *suite) {
		e := s.entry("a", delayed(long))
		e.Spec = fullSpec("a", s.queue)
		s.insertNew(e)
		_, err := s.edit("a", func(spec *job.Spec) { spec.Timeout = time.Second })
		require.NoError(s, err)
		wanted := s.get("a")
		wanted.Body, wanted.History, wanted.Events = nil, nil, nil
		got := s.list(s.filter(job.Scheduled))[0]
		got.Spec = normal(got.Spec)
		require.Empty(s, got.History)
		require.Empty(s, got.Events)
		got.History, got.Events = nil, nil
		require.Equal(s, wanted, got)
	}},
	{"TopicStats.Registered is the sum of all states", func(s *suite) {
		s.oneEach()
		got := s.stats()
		require.Equal(s, store.TopicStats{
			Namespace: s.queue.Namespace, Topic: s.queue.Topic, Registered: 6, Running: 1, Delivered: 1, Dead: 1,
			Cancelled: 1, Scheduled: got.Scheduled, Ready: got.Ready, OldestDue: got.OldestDue, Bytes: got.Bytes,
		}, got)
		require.EqualValues(s, 2, got.Scheduled+got.Ready)
		require.Equal(s, s.get("ready").DueAt, got.OldestDue)
		_, err := s.revive("dead", long)
		require.NoError(s, err)
		require.NoError(s, Check(s.Context(), s.Store))
	}},
	{"TopicStats.OldestDue ignores running jobs", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claimAll("a")[0]
		require.True(s, s.stats().OldestDue.IsZero())
		s.insertNew(s.entry("c", delayed(2*long), in(s.laneQueue(1))), s.entry("b", delayed(long)))
		require.Equal(s, s.get("b").DueAt, s.stats().OldestDue)
		s.settleOne(h, retry(time.Minute))
		require.Equal(s, s.get("a").DueAt, s.stats().OldestDue)
	}},
	{"TopicStats pages by name, or returns the named topics", func(s *suite) {
		for _, topic := range []string{"b", "e", "c", "a", "d"} {
			s.insertNew(s.entry(topic, in(s.queueOf(s.queue.Namespace, topic, 0)), delayed(long)))
		}
		s.insertNew(s.entry("x", in(s.queueOf("other", "aa", 0))))
		count := func(f store.StatsFilter) (topics []string) {
			f.Namespace = s.queue.Namespace
			rows, err := s.shard().TopicStats(s.Context(), f)
			require.NoError(s, err)
			f.NamesOnly = true
			names, err := s.shard().TopicStats(s.Context(), f)
			require.NoError(s, err)
			require.Len(s, names, len(rows))
			for i, row := range rows {
				require.Equal(s,
					store.TopicStats{Namespace: row.Namespace, Topic: row.Topic, Registered: row.Registered}, names[i])
				require.Equal(s, s.queue.Namespace, row.Namespace)
				require.EqualValues(s, 1, row.Registered)
				require.EqualValues(s, 1, row.Scheduled)
				topics = append(topics, row.Topic)
			}
			return topics
		}
		require.Equal(s, []string{"a", "b"}, count(store.StatsFilter{Limit: 2}))
		require.Equal(s, []string{"c", "d"}, count(store.StatsFilter{Limit: 2, After: "b"}))
		require.Equal(s, []string{"e"}, count(store.StatsFilter{Limit: 2, After: "d"}))
		require.Equal(s, []string{"c", "d", "e"}, count(store.StatsFilter{Limit: store.MaxBatch, After: "bb"}),
			"After need not be a topic")
		require.Empty(s, count(store.StatsFilter{Limit: 2, After: "e"}))
		require.Equal(s, []string{"b", "d"}, count(store.StatsFilter{Topics: []string{"d", "unknown", "b"}}))
	}},
	{"Totals adds up all topics of the namespace", func(s *suite) {
		totals := func() store.TopicStats {
			total, err := s.shard().Totals(s.Context(), s.queue.Namespace)
			require.NoError(s, err)
			return total
		}
		require.Equal(s, store.TopicStats{Namespace: s.queue.Namespace}, totals())
		s.insertNew(s.entry("a"), s.entry("b"),
			s.entry("c", in(s.queueOf(s.queue.Namespace, "more", 0)), delayed(long)))
		s.insertNew(s.entry("x", in(s.queueOf("other", "more", 0))))
		s.settleOne(s.claimAll("a", "b")[0], delivered)
		got := totals()
		require.Equal(s, s.get("c").DueAt, got.OldestDue)
		got.OldestDue, got.Bytes = time.Time{}, 0
		require.Equal(s,
			store.TopicStats{Namespace: s.queue.Namespace, Registered: 3, Scheduled: 1, Running: 1, Delivered: 1}, got)
	}},
	{"TopicStats of an unknown topic has no jobs", func(s *suite) {
		rows, err := s.shard().TopicStats(s.Context(),
			store.StatsFilter{Namespace: s.queue.Namespace, Topics: []string{"unknown"}})
		require.NoError(s, err)
		for _, row := range rows {
			require.Zero(s, row.Registered)
		}
	}},
	{"LaneStats counts unfinished jobs, by name and in pages", func(s *suite) {
		for i := range 7 {
			s.insertNew(s.entry(fmt.Sprintf("s%d", i), in(s.laneQueue(i)), delayed(long)))
		}
		s.insertNew(s.entry("held", in(s.laneQueue(2))))
		require.Len(s, s.claim(claimOf(s.laneQueue(2))).Jobs, 1)
		s.insertNew(s.entry("ready", in(s.laneQueue(2))))
		var rows []store.LaneStats
		for after := ""; ; {
			page, err := s.shard().LaneStats(s.Context(), s.queue.Namespace, s.queue.Topic, after, 3)
			require.NoError(s, err)
			require.LessOrEqual(s, len(page), 3)
			if len(page) == 0 {
				break
			}
			rows = append(rows, page...)
			after = page[len(page)-1].Lane
		}
		require.Len(s, rows, 7)
		require.True(s, slices.IsSortedFunc(rows,
			func(a, b store.LaneStats) int { return slices.Compare([]string{a.Lane}, []string{b.Lane}) }))
		require.Equal(s, s.laneQueue(2).Lane, rows[2].Lane)
		require.EqualValues(s, 1, rows[2].Running)
		require.EqualValues(s, 2, rows[2].Scheduled+rows[2].Ready)
		require.Equal(s, store.LaneStats{Lane: s.laneQueue(3).Lane, Scheduled: 1}, rows[3])
	}},
	{"Ping succeeds until Close", func(s *suite) {
		require.NoError(s, s.Store.Ping(s.Context()))
		require.NoError(s, s.Store.Close())
		require.ErrorIs(s, s.Store.Ping(s.Context()), store.ErrUnavailable)
		_, err := s.shard().Insert(s.Context(), store.NewToken(), []store.NewJob{s.entry("a")})
		require.ErrorIs(s, err, store.ErrUnavailable)
	}},
	{"calls return the error of a cancelled context", func(s *suite) {
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		_, err := s.shard().Get(ctx, s.ref("a"))
		require.ErrorIs(s, err, context.Canceled)
		_, err = s.shard().Insert(ctx, store.NewToken(), []store.NewJob{s.entry("a")})
		require.ErrorIs(s, err, context.Canceled)
		_, err = s.shard().Wait(ctx, store.WaitOptions{Groups: []string{store.GroupPush}})
		require.ErrorIs(s, err, context.Canceled)
	}},
	{"shards are isolated", func(s *suite) {
		s.insertNew(s.entry("a"))
		for shard := range s.Store.Shards() {
			if shard == s.shardNumber {
				continue
			}
			_, err := s.Store.Shards()[shard].Get(s.Context(), s.ref("a"))
			require.ErrorIs(s, err, store.ErrNotFound)
			known, err := s.Store.Shards()[shard].Known(s.Context(), []job.Ref{s.ref("a")})
			require.NoError(s, err)
			require.Equal(s, []store.IDStatus{{}}, known)
			rows, err := s.Store.Shards()[shard].TopicStats(s.Context(),
				store.StatsFilter{Namespace: s.queue.Namespace, Topics: []string{s.queue.Topic}})
			require.NoError(s, err)
			for _, row := range rows {
				require.Zero(s, row.Registered)
			}
			wakeup, err := s.Store.Shards()[shard].Wait(s.Context(),
				store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Millisecond})
			require.NoError(s, err)
			require.Empty(s, wakeup)
		}
		s.claimAll("a")
	}},
	{"jobs and policies survive a restart", func(s *suite) {
		if s.Reopen == nil {
			return // the engine cannot be reopened
		}
		s.put(s.Defaults)
		s.endJob("gone", delivered)
		s.oneEach()
		before := make(map[job.State]job.Job)
		for _, state := range states {
			before[state] = s.get(string(state))
		}
		s.Store = s.Reopen()
		for _, state := range states {
			after := s.get(string(state))
			require.Equal(s, before[state].Spec, after.Spec)
			if state != job.Running {
				require.Equal(s, before[state], after)
			}
		}
		topics, _, err := ListTopics(s.Context(), s.Store)
		require.NoError(s, err)
		require.Len(s, topics, 1)
		require.Equal(s, store.Existing, s.insert(s.entry("gone"))[0].Outcome)
		require.NoError(s, Check(s.Context(), s.Store))
		s.eventually("the ready job", func() bool {
			s.carry(store.CarryOptions{})
			return slices.Contains(idsOf(s.claim(claimOf(s.queue)).Jobs), "ready")
		})
	}},
}
