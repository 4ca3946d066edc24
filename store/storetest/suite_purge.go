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

// purge removes dead jobs and returns an error for each.
func (s *suite) purge(token store.Token, ids ...string) []error {
	s.Helper()
	var items []store.Removal
	for _, id := range ids {
		items = append(items, store.Removal{Ref: s.ref(id), From: job.Dead})
	}
	errs, err := s.shard().Purge(s.Context(), token, items)
	require.NoError(s, err)
	require.Len(s, errs, len(ids))
	return errs
}

var purgeCases = []testCase{
	{"removes a dead job and keeps its count", func(s *suite) {
		s.endJob("other", dead)
		s.oneEach()
		before := s.stats()
		require.NoError(s, s.purge(store.NewToken(), "dead")[0])
		require.True(s, s.isGone("dead"))
		require.Equal(s, []string{"other"}, s.listed(job.Dead))
		require.Equal(s, before, s.stats())
		require.NoError(s, Check(s.Context(), s.Store))
		_, err := s.revive("dead", 0)
		require.ErrorIs(s, err, store.ErrNotFound)
		_, err = s.cancel("dead")
		require.ErrorIs(s, err, store.ErrNotFound)
		_, err = s.cancel("ready")
		require.NoError(s, err)
		s.endJob("third", dead)
		require.Equal(s, before.Dead+1, s.stats().Dead)
	}},
	{"returns an error per job in another state or unknown, in order", func(s *suite) {
		s.oneEach()
		errs := s.purge(store.NewToken(), "scheduled", "dead", "ready", "running", "unknown",
			"delivered", "cancelled", "dead")
		for i, state := range []job.State{job.Scheduled, "", job.Ready, job.Running, "", job.Delivered, job.Cancelled} {
			if state != "" {
				s.inState(errs[i], state)
				require.Equal(s, state, s.get(string(state)).State)
			}
		}
		require.NoError(s, errs[1])
		require.ErrorIs(s, errs[4], store.ErrNotFound)
		require.ErrorIs(s, errs[7], store.ErrNotFound, "it is gone already")
		require.EqualValues(s, 6, s.stats().Registered)
	}},
	{"removes a job that has ended otherwise, and none of another version", func(s *suite) {
		s.oneEach()
		before := s.stats()
		for _, state := range []job.State{job.Delivered, job.Cancelled, job.Dead} {
			item := store.Removal{Ref: s.ref(string(state)), IfVersion: s.get(string(state)).Version + 1}
			wrong := item
			wrong.From, wrong.IfVersion = job.Delivered, 0
			if state == job.Delivered {
				wrong.From = job.Dead
			}
			errs, err := s.shard().Purge(s.Context(), store.NewToken(), []store.Removal{item, wrong})
			require.NoError(s, err)
			require.ErrorIs(s, errs[0], store.ErrVersion)
			s.inState(errs[1], state)
			item.IfVersion--
			errs, err = s.shard().Purge(s.Context(), store.NewToken(), []store.Removal{item, item})
			require.NoError(s, err)
			require.NoError(s, errs[0])
			require.ErrorIs(s, errs[1], store.ErrNotFound)
			require.True(s, s.isGone(string(state)))
		}
		errs, err := s.shard().Purge(s.Context(), store.NewToken(), []store.Removal{{Ref: s.ref("running")}})
		require.NoError(s, err)
		s.inState(errs[0], job.Running)
		require.Equal(s, before, s.stats())
		require.NoError(s, Check(s.Context(), s.Store))
	}},
	{"the id stays known during its window", func(s *suite) {
		s.put(policy.Topic{IDWindow: new(s.shortTime())})
		s.endJob("a", dead)
		require.NoError(s, s.purge(store.NewToken(), "a")[0])
		if s.Advance != nil { // else the window may be over already
			got := s.insert(s.entry("a"))[0]
			require.Equal(s, store.Existing, got.Outcome)
			require.Equal(s, job.Dead, got.Job.State)
			require.Equal(s, policy.ReasonGaveUp, got.Job.Reason)
			require.Equal(s, store.Conflict, s.insert(s.entry("a", body("another")))[0].Outcome)
			s.sweep()
			require.Equal(s, store.Existing, s.insert(s.entry("a"))[0].Outcome)
		}
		s.advance(s.shortTime() + 2*time.Millisecond)
		s.eventually("a free id", func() bool {
			s.sweep()
			return s.insert(s.entry("a"))[0].Outcome == store.Created
		})
		s.claimAll("a")
	}},
	{"a generated id is forgotten with its job", func(s *suite) {
		e := s.entry("a")
		e.Fingerprint = nil
		s.insertNew(e)
		s.settleOne(s.claimAll("a")[0], dead)
		require.NoError(s, s.purge(store.NewToken(), "a")[0])
		known, err := s.shard().Known(s.Context(), []job.Ref{s.ref("a")})
		require.NoError(s, err)
		require.Equal(s, []store.IDStatus{{}}, known)
	}},
	{"purged bytes no longer count against MaxBytes", func(s *suite) {
		s.put(policy.Topic{KeepDead: policy.Retention{MaxBytes: new(int64(35_000))}})
		large := body(strings.Repeat("x", 10_000))
		for i := range 3 {
			s.endJob(fmt.Sprint(i), dead, large)
			s.advance(2 * time.Millisecond)
		}
		for _, err := range s.purge(store.NewToken(), "1", "2") {
			require.NoError(s, err)
		}
		for i := range 2 {
			s.endJob(fmt.Sprintf("new-%d", i), dead, large)
			s.advance(2 * time.Millisecond)
		}
		s.sweep()
		require.Equal(s, []string{"0", "new-0", "new-1"}, s.listed(job.Dead))
		s.endJob("new-2", dead, large)
		s.sweep()
		require.Equal(s, []string{"new-0", "new-1", "new-2"}, s.listed(job.Dead))
	}},
	{"a repeated token returns the first result", func(s *suite) {
		s.endJob("a", dead)
		token := store.NewToken()
		for range 2 {
			errs := s.purge(token, "a", "unknown")
			require.NoError(s, errs[0])
			require.ErrorIs(s, errs[1], store.ErrNotFound)
		}
		require.EqualValues(s, 1, s.stats().Dead)
	}},
	{"accepts MaxBatch jobs", func(s *suite) {
		s.put(policy.Topic{LaneConcurrency: 1000})
		var entries []store.NewJob
		var ids []string
		n := s.number(40, store.MaxBatch)
		for i := range n {
			ids = append(ids, fmt.Sprint(i))
			entries = append(entries, s.entry(ids[i]))
		}
		s.insertNew(entries...)
		var items []store.Settlement
		for _, h := range s.claim(claimOf(s.queue)).Jobs {
			items = append(items, settlement(h, dead))
		}
		require.NoError(s, errors.Join(s.settle(items...)...))
		require.NoError(s, errors.Join(s.purge(store.NewToken(), ids...)...))
		require.Empty(s, s.listed(job.Dead))
		require.EqualValues(s, n, s.stats().Dead)
	}},
	{"purged jobs stay away after a restart", func(s *suite) {
		if s.Reopen == nil {
			return // the engine cannot be reopened
		}
		s.endJob("a", dead)
		s.endJob("b", dead)
		require.NoError(s, s.purge(store.NewToken(), "a")[0])
		s.Store = s.Reopen()
		require.True(s, s.isGone("a"))
		require.Equal(s, []string{"b"}, s.listed(job.Dead))
		require.EqualValues(s, 2, s.stats().Dead)
		require.Equal(s, store.Existing, s.insert(s.entry("a"))[0].Outcome)
	}},
}
