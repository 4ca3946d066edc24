package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// listed returns the ids of the ended jobs that are still stored.
func (s *suite) listed(state job.State) []string {
	s.Helper()
	return idsOfJobs(s.list(s.filter(state)))
}

func keep(n int64) policy.Retention { return policy.Retention{Max: &n} }

var retentionCases = []testCase{
	{"keeps the newest by count, dead and delivered apart", func(s *suite) {
		s.put(policy.Topic{KeepDelivered: keep(2), KeepDead: keep(3)})
		for i := range 5 {
			s.endJob(fmt.Sprintf("delivered-%d", i), delivered)
			s.endJob(fmt.Sprintf("dead-%d", i), dead)
			s.advance(2 * time.Millisecond)
		}
		s.sweep()
		require.Equal(s, []string{"delivered-3", "delivered-4"}, s.listed(job.Delivered))
		require.Equal(s, []string{"dead-2", "dead-3", "dead-4"}, s.listed(job.Dead))
		require.True(s, s.isGone("delivered-0"))
		got := s.stats()
		require.EqualValues(s, 10, got.Registered, "what is gone still counts")
		require.EqualValues(s, 5, got.Delivered)
		require.EqualValues(s, 5, got.Dead)
	}},
	{"keeps cancelled jobs like delivered ones", func(s *suite) {
		s.put(policy.Topic{KeepDelivered: keep(1), KeepDead: keep(0)})
		for i := range 3 {
			id := fmt.Sprint(i)
			s.insertNew(s.entry(id, delayed(long)))
			_, err := s.cancel(id)
			require.NoError(s, err)
			s.advance(2 * time.Millisecond)
		}
		s.sweep()
		require.Equal(s, []string{"2"}, s.listed(job.Cancelled))
		require.EqualValues(s, 3, s.stats().Cancelled)
	}},
	{"forgets an unused topic, but not its counts", func(s *suite) {
		s.recheck() // before that nothing is forgotten
		topic := s.queueOf(s.queue.Namespace, "once", 0)
		total := func() store.TopicStats {
			got, err := s.shard().Totals(s.Context(), s.queue.Namespace)
			require.NoError(s, err)
			return got
		}
		known := func() (topics []string) {
			rows, err := s.shard().TopicStats(s.Context(), store.StatsFilter{Namespace: s.queue.Namespace, Limit: 10})
			require.NoError(s, err)
			for _, row := range rows {
				topics = append(topics, row.Topic)
			}
			return topics
		}
		s.insertNew(s.entry("stays", delayed(long)))
		for round := range int64(3) {
			id := fmt.Sprint("gone-", round)
			e := s.entry(id, in(topic))
			e.Fingerprint = nil // of a generated id, which need not be remembered
			s.insertNew(e)
			s.sweep()
			s.sweep()
			require.Contains(s, known(), "once", "it has a job")
			held := s.claim(claimOf(topic)).Jobs
			require.Len(s, held, 1)
			s.sweep()
			s.sweep()
			require.Contains(s, known(), "once", "its job is held")
			item := settlement(held[0], dead)
			item.Attempt = job.Attempt{} // a failed one would be remembered for an hour
			require.NoError(s, s.settle(item)[0])
			s.sweep()
			s.sweep()
			require.Contains(s, known(), "once", "its dead letter is kept")
			errs, err := s.shard().Purge(s.Context(), store.NewToken(), []store.Removal{{Ref: s.ref(id)}})
			require.NoError(s, err)
			require.NoError(s, errs[0])
			for range 3 { // lanes are forgotten before their topic
				s.sweep()
			}
			require.Equal(s, []string{s.queue.Topic}, known())
			got := total()
			require.Equal(s, round+2, got.Registered)
			require.Equal(s, round+1, got.Dead)
			require.EqualValues(s, 1, got.Scheduled)
		}
		_, err := s.shard().Get(s.Context(), s.ref("stays"))
		require.NoError(s, err)
		require.NoError(s, Check(s.Context(), s.Store))
	}},
	{"keeps a topic that has settings", func(s *suite) {
		s.recheck() // before that nothing is forgotten
		lane := s.queueOf(s.queue.Namespace, "lanes", 0)
		s.putLane(lane, policy.Lane{LaneConcurrency: 3})
		for i, topic := range []string{"put", "lanes"} {
			q := s.queueOf(s.queue.Namespace, topic, 0)
			id := fmt.Sprint(i)
			e := s.entry(id, in(q))
			e.Fingerprint = nil
			if topic == "put" {
				_, err := store.PutTopic(s.Context(), s.Store,
					store.Topic{Namespace: q.Namespace, Name: topic, Policy: policy.Topic{Workers: 7}})
				require.NoError(s, err)
			}
			s.insertNew(e)
			s.settleOne(s.claim(claimOf(q)).Jobs[0], dead)
			errs, err := s.shard().Purge(s.Context(), store.NewToken(), []store.Removal{{Ref: s.ref(id)}})
			require.NoError(s, err)
			require.NoError(s, errs[0])
		}
		for range 3 {
			s.sweep()
		}
		rows, err := s.shard().TopicStats(s.Context(), store.StatsFilter{Namespace: s.queue.Namespace, Limit: 10})
		require.NoError(s, err)
		require.Len(s, rows, 2)
	}},
	{"keeps the newest by bytes", func(s *suite) {
		s.put(policy.Topic{KeepDelivered: policy.Retention{MaxBytes: new(int64(35_000))}})
		for i := range 6 {
			s.endJob(fmt.Sprint(i), delivered, body(strings.Repeat("x", 10_000)))
			s.advance(2 * time.Millisecond)
		}
		s.sweep()
		require.Equal(s, []string{"3", "4", "5"}, s.listed(job.Delivered))
	}},
	{"keeps by age", func(s *suite) {
		s.put(policy.Topic{KeepDead: policy.Retention{For: new(3 * s.shortTime())}})
		s.endJob("old", dead)
		s.advance(2 * s.shortTime())
		s.endJob("new", dead)
		s.advance(2 * s.shortTime())
		s.sweep()
		require.True(s, s.isGone("old"))
		if s.Advance != nil { // else the new one may be old by now on a slow machine
			require.False(s, s.isGone("new"))
		}
	}},
	{"never removes unfinished jobs", func(s *suite) {
		zero := policy.Retention{For: new(time.Duration(0)), Max: new(int64(0)), MaxBytes: new(int64(0))}
		s.put(policy.Topic{KeepDelivered: zero, KeepDead: zero, IDWindow: new(time.Duration(0))})
		s.oneEach()
		s.advance(2 * time.Millisecond)
		s.sweep()
		for _, state := range states {
			require.Equal(s, state.Ended(), s.isGone(string(state)), state)
		}
		require.NoError(s, Check(s.Context(), s.Store))
	}},
	{"does not sweep a revived job for its first end", func(s *suite) {
		s.put(policy.Topic{KeepDead: keep(1)})
		s.endJob("a", dead)
		s.advance(2 * time.Millisecond)
		_, err := s.revive("a", long)
		require.NoError(s, err)
		s.endJob("b", dead)
		s.advance(2 * time.Millisecond)
		s.endJob("c", dead)
		s.sweep()
		require.Equal(s, job.Scheduled, s.get("a").State)
		require.Equal(s, []string{"c"}, s.listed(job.Dead))
	}},
	{"respects its limit and sets More", func(s *suite) {
		for i := range 10 {
			s.endJob(fmt.Sprint(i), delivered)
		}
		s.put(policy.Topic{KeepDelivered: keep(0), IDWindow: new(time.Duration(0))})
		s.advance(2 * time.Millisecond)
		swept, err := s.shard().Sweep(s.Context(), store.NewToken(), 4)
		require.NoError(s, err)
		require.Equal(s, 4, swept.Jobs)
		require.LessOrEqual(s, swept.IDs, 4)
		require.True(s, swept.More)
		s.sweep()
		require.Empty(s, s.listed(job.Delivered))
	}},
	{"an id stays known during its window, whatever the retention", func(s *suite) {
		s.put(policy.Topic{KeepDelivered: keep(0), KeepDead: keep(0)})
		s.endJob("delivered", delivered)
		s.endJob("dead", dead)
		s.insertNew(s.entry("cancelled"))
		_, err := s.cancel("cancelled")
		require.NoError(s, err)
		s.sweep()
		for id, wanted := range map[string]struct {
			outcome store.Outcome
			reason  policy.Reason
		}{
			"delivered": {store.Existing, ""},
			"dead":      {store.Existing, policy.ReasonGaveUp},
			"cancelled": {store.Conflict, job.ReasonCancelled},
		} {
			require.True(s, s.isGone(id), id)
			got := s.insert(s.entry(id))[0]
			require.Equal(s, wanted.outcome, got.Outcome, id)
			require.Equal(s, job.State(id), got.Job.State, id)
			require.Equal(s, wanted.reason, got.Job.Reason, id)
			require.Equal(s, id, got.Job.ID)
			require.Equal(s, s.queue, got.Job.Queue)
			s.sameTime(s.now(), got.Job.FinishedAt, "FinishedAt")
			require.Equal(s, store.Conflict, s.insert(s.entry(id, body("another")))[0].Outcome, id)
		}
		known, err := s.shard().Known(s.Context(),
			[]job.Ref{s.ref("delivered"), s.ref("dead"), s.ref("cancelled"), s.ref("unknown")})
		require.NoError(s, err)
		require.Equal(s, []store.IDStatus{{Ended: job.Delivered}, {Ended: job.Dead}, {Ended: job.Cancelled}, {}}, known)
		_, err = s.revive("dead", 0)
		require.ErrorIs(s, err, store.ErrNotFound)
		_, err = s.cancel("cancelled")
		require.ErrorIs(s, err, store.ErrNotFound)
	}},
	{"an id is free once its window and its job are gone", func(s *suite) {
		s.put(policy.Topic{KeepDelivered: keep(0), IDWindow: new(s.shortTime())})
		s.endJob("a", delivered)
		s.advance(s.shortTime() + 2*time.Millisecond)
		s.eventually("a free id", func() bool {
			s.sweep()
			return s.insert(s.entry("a"))[0].Outcome == store.Created
		})
		require.EqualValues(s, 2, s.stats().Registered)
		s.claimAll("a")
	}},
	{"the window of a revived job's id starts at its new end", withMovedClock(func(s *suite) {
		window := policy.Topic{IDWindow: new(s.shortTime())}
		s.put(window)
		s.endJob("a", dead)
		s.advance(s.shortTime() + 2*time.Millisecond)
		s.sweep()
		_, err := s.revive("a", 0)
		require.NoError(s, err)
		s.put(policy.Topic{KeepDelivered: keep(0)})
		s.settleOne(s.claimAll("a")[0], delivered)
		s.sweep()
		require.True(s, s.isGone("a"))
		require.Equal(s, store.Existing, s.insert(s.entry("a"))[0].Outcome)
	})},
	{"an id without a fingerprint is not remembered", func(s *suite) {
		s.put(policy.Topic{KeepDelivered: keep(0)})
		e := s.entry("a")
		e.Fingerprint = nil
		s.insertNew(e)
		s.settleOne(s.claimAll("a")[0], delivered)
		s.sweep()
		known, err := s.shard().Known(s.Context(), []job.Ref{s.ref("a")})
		require.NoError(s, err)
		require.Equal(s, []store.IDStatus{{}}, known)
	}},
}
