package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// reviveAll sends revivals in one call.
func (s *suite) reviveAll(token store.Token, items ...store.Revival) []store.ReviveResult {
	s.Helper()
	results, err := s.shard().Revive(s.Context(), token, items)
	require.NoError(s, err)
	require.Len(s, results, len(items))
	return results
}

var reviveBatchCases = []testCase{
	{"returns one result per revival, in order", func(s *suite) {
		s.endJob("later", dead)
		s.oneEach()
		got := s.reviveAll(store.NewToken(),
			store.Revival{Ref: s.ref("running")}, store.Revival{Ref: s.ref("dead")},
			store.Revival{Ref: s.ref("unknown")},
			store.Revival{Ref: s.ref("later"), Delay: long}, store.Revival{Ref: s.ref("cancelled"), Delay: 2 * long},
			store.Revival{Ref: s.ref("scheduled")}, store.Revival{Ref: s.ref("delivered"), Delay: 3 * long},
		)
		s.inState(got[0].Err, job.Running)
		require.ErrorIs(s, got[2].Err, store.ErrNotFound)
		s.inState(got[5].Err, job.Scheduled)
		for i, delay := range map[int]time.Duration{1: 0, 3: long, 4: 2 * long, 6: 3 * long} {
			require.NoError(s, got[i].Err)
			j := got[i].Job
			require.Equal(s, []string{"", "dead", "", "later", "cancelled", "", "delivered"}[i], j.ID)
			s.sameTime(s.now().Add(delay), j.DueAt, "DueAt")
			require.Equal(s, 1, j.Generation)
			require.Equal(s, s.get(j.ID).Progress, j.Progress)
		}
		require.Equal(s, job.Ready, got[1].Job.State)
		s.waitNotified(s.queue)
		s.claimAll("dead", "ready")
	}},
	{"revives a job once that a call names twice", func(s *suite) {
		s.endJob("a", dead)
		got := s.reviveAll(store.NewToken(), store.Revival{Ref: s.ref("a"), Delay: long},
			store.Revival{Ref: s.ref("a")})
		require.NoError(s, got[0].Err)
		s.inState(got[1].Err, job.Scheduled)
		require.Equal(s, 1, s.get("a").Generation)
		require.EqualValues(s, 1, s.stats().Registered)
	}},
	{"leaves jobs in another state than From", func(s *suite) {
		s.oneEach()
		for _, from := range []job.State{job.Dead, job.Delivered, job.Cancelled} {
			for _, state := range []job.State{job.Dead, job.Delivered, job.Cancelled} {
				if from != state {
					before := s.get(string(state))
					_, err := s.reviveWith(store.NewToken(), store.Revival{Ref: s.ref(string(state)), From: from})
					s.inState(err, state)
					require.Equal(s, before, s.get(string(state)))
				}
			}
		}
		for _, state := range []job.State{job.Dead, job.Delivered, job.Cancelled} {
			got, err := s.reviveWith(store.NewToken(),
				store.Revival{Ref: s.ref(string(state)), From: state, Delay: long})
			require.NoError(s, err)
			require.Equal(s, job.Scheduled, got.State)
		}
	}},
	{"URL replaces the job's URL, and keeps the first", func(s *suite) {
		e := s.entry("a")
		e.Spec = fullSpec("a", s.queue)
		s.insertNew(e)
		s.settleOne(s.claimAll("a")[0], dead)
		wanted := s.get("a").Spec
		wanted.SetURL("https://moved.example/hooks/" + strings.Repeat("x", 300))
		got, err := s.reviveWith(store.NewToken(), store.Revival{Ref: s.ref("a"), URL: wanted.URL})
		require.NoError(s, err)
		require.Equal(s, wanted, got.Spec)
		require.Equal(s, wanted, s.get("a").Spec)
		h := s.claimAll("a")[0]
		require.Equal(s, wanted, h.Spec)
		s.settleOne(h, dead)
		got, err = s.revive("a", long)
		require.NoError(s, err)
		require.Equal(s, wanted.URL, got.URL, "without one it stays")
	}},
	{"a repeated token returns the first result", func(s *suite) {
		s.endJob("a", dead)
		s.endJob("b", delivered)
		token := store.NewToken()
		items := []store.Revival{
			{Ref: s.ref("a"), Delay: long},
			{Ref: s.ref("unknown")},
			{Ref: s.ref("b"), From: job.Dead},
		}
		first := s.reviveAll(token, items...)
		_, err := s.cancel("a")
		require.NoError(s, err)
		second := s.reviveAll(token, items...)
		require.NoError(s, second[0].Err)
		require.Equal(s, first[0].Job.State, second[0].Job.State)
		require.Equal(s, first[0].Job.Version, second[0].Job.Version)
		require.ErrorIs(s, second[1].Err, store.ErrNotFound)
		s.inState(second[2].Err, job.Delivered)
		require.Equal(s, job.Cancelled, s.get("a").State, "a repeated call changes nothing")
	}},
	{"accepts MaxBatch jobs of several lanes and topics", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 1000})
		lanes := []job.Queue{s.laneQueue(0), s.laneQueue(1), s.queueOf(s.queue.Namespace, "mails", 0)}
		var entries []store.NewJob
		var items []store.Revival
		n := s.number(60, store.MaxBatch)
		for i := range n {
			e := s.entry(fmt.Sprint(i), in(lanes[i%len(lanes)]))
			entries, items = append(entries, e), append(items,
				store.Revival{Ref: e.Ref(), Delay: time.Duration(i/len(lanes)) * time.Minute})
		}
		s.insertNew(entries...)
		for ended := 0; ended < n; {
			var settled []store.Settlement
			for _, h := range s.claim(claimOf(lanes...)).Jobs {
				settled = append(settled, settlement(h, dead))
			}
			require.NotEmpty(s, settled)
			require.NoError(s, errors.Join(s.settle(settled...)...))
			ended += len(settled)
		}
		for i, got := range s.reviveAll(store.NewToken(), items...) {
			require.NoError(s, got.Err)
			require.Equal(s, entries[i].ID, got.Job.ID)
			require.Equal(s, entries[i].Queue, got.Job.Queue)
			s.sameTime(s.now().Add(items[i].Delay), got.Job.DueAt, "DueAt")
		}
		require.Len(s, s.claim(claimOf(lanes...)).Jobs, len(lanes))
	}},
}
