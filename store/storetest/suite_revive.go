package storetest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

var reviveCases = []testCase{
	{"compares IfVersion, so that no death is revived twice", func(s *suite) {
		s.endJob("a", dead)
		wrong := store.Revival{Ref: s.ref("a"), From: job.Dead, IfVersion: 2}
		right := wrong
		right.IfVersion = 1
		_, err := s.reviveWith(store.NewToken(), wrong)
		require.ErrorIs(s, err, store.ErrVersion)
		got, err := s.reviveWith(store.NewToken(), right)
		require.NoError(s, err)
		require.EqualValues(s, 2, got.Version)
		_, err = s.reviveWith(store.NewToken(), right)
		require.ErrorIs(s, err, store.ErrVersion, "it is not dead any more, and changed")
		s.settleOne(s.claimAll("a")[0], dead)
		_, err = s.reviveWith(store.NewToken(), right)
		require.ErrorIs(s, err, store.ErrVersion, "it died again")
		_, err = s.reviveWith(store.NewToken(), wrong)
		require.NoError(s, err)
	}},
	{"starts a new generation with a full budget, attempt numbers continue", func(s *suite) {
		s.endJob("delivered", delivered)
		s.endJob("dead", dead)
		s.insertNew(s.entry("cancelled"))
		h := s.claimAll("cancelled")[0]
		_, err := s.cancel("cancelled")
		require.NoError(s, err)
		s.settleOne(h, retry(0))
		for _, id := range []string{"delivered", "dead", "cancelled"} {
			got, err := s.revive(id, long)
			require.NoError(s, err)
			require.Equal(s, job.Scheduled, got.State, id)
			require.Empty(s, got.Reason, id)
			require.True(s, got.FinishedAt.IsZero(), id)
			s.sameTime(s.now().Add(long), got.DueAt, "DueAt")
			require.Equal(s, got.DueAt, got.FirstDueAt, id)
			require.Equal(s, 1, got.Generation, id)
			require.Equal(s, 1, got.Attempts, id)
			require.Zero(s, got.FailedAttempts, id)
			require.Zero(s, got.ConsecutiveLost, id)
			require.False(s, got.CancelRequested, id)
			events := eventKinds(s.get(id))
			require.Equal(s, job.EventRevived, events[len(events)-1], id)
		}
		stats := s.stats()
		require.EqualValues(s, 3, stats.Registered)
		require.EqualValues(s, 3, stats.Scheduled+stats.Ready)
		require.Zero(s, stats.Delivered+stats.Dead+stats.Cancelled)
	}},
	{"the job is due at RunAt, or now if that has passed", func(s *suite) {
		s.endJob("ahead", dead)
		s.endJob("past", dead)
		runAt := s.now().Add(long + 300*time.Microsecond)
		got, err := s.reviveWith(store.NewToken(), store.Revival{Ref: s.ref("ahead"), RunAt: runAt})
		require.NoError(s, err)
		require.Equal(s, job.Scheduled, got.State)
		require.False(s, got.DueAt.Before(runAt), "due before the requested time")
		require.WithinDuration(s, runAt, got.DueAt, time.Millisecond)
		require.Equal(s, got.DueAt, got.FirstDueAt)
		got, err = s.reviveWith(store.NewToken(), store.Revival{Ref: s.ref("past"), RunAt: s.now().Add(-time.Hour)})
		require.NoError(s, err)
		require.Equal(s, job.Ready, got.State)
		s.sameTime(s.now(), got.DueAt, "DueAt")
		s.claimAll("past")
	}},
	{"a job with defaults alone is revived", func(s *suite) {
		n := s.entry("a")
		n.Spec = job.Spec{
			ID: n.ID, Queue: n.Queue, URL: "https://a.example/", Method: "POST", BodyKind: job.BodyJSON,
			ContentType: "application/json", Body: []byte("1"),
		}
		s.insertNew(n)
		_, err := s.cancel("a")
		require.NoError(s, err)
		got, err := s.revive("a", 0)
		require.NoError(s, err)
		require.Equal(s, normal(n.Spec), normal(got.Spec))
		require.Equal(s, normal(n.Spec), normal(s.get("a").Spec))
	}},
	{"replaces the URL and the headers", func(s *suite) {
		for i, item := range []store.Revival{
			{URL: "https://new.example/"},
			{Header: map[string][]string{"X-New": {"1", "2"}}},
			{Header: map[string][]string{}},
			{URL: "https://newer.example/", Header: map[string][]string{"X-Newer": {"1"}}, ExpiresIn: 2 * long},
			{},
		} {
			id := "a" + strconv.Itoa(i)
			s.endJob(id, dead)
			wanted := s.get(id).Spec
			item.Ref, item.Delay = s.ref(id), long
			if item.URL != "" {
				wanted.SetURL(item.URL)
			}
			if item.Header != nil {
				wanted.Header = item.Header
			}
			got, err := s.reviveWith(store.NewToken(), item)
			require.NoError(s, err)
			require.Equal(s, normal(wanted), normal(got.Spec), i)
			require.Equal(s, normal(wanted), normal(s.get(id).Spec), i)
		}
	}},
	{"names its actor, and keeps the first URL", func(s *suite) {
		for id, first := range map[string]string{"near": "http://" + s.queue.Lane +
			"/first", "far": "https://elsewhere.example/first", "none": ""} {
			s.endJob(id, dead, at(first))
			want := first
			for i, url := range []string{"", first, "https://second.example/", "http://" + s.queue.Lane +
				"/third", ""} {
				revival := store.Revival{Ref: s.ref(id), URL: url, Actor: fmt.Sprint("actor-", i)}
				got, err := s.reviveWith(store.NewToken(), revival)
				require.NoError(s, err)
				if url != "" && want == "" {
					want = url // attempts before it have their own
				}
				require.Equal(s, want, got.AttemptURL(), id)
				found := s.get(id)
				require.Equal(s, normal(got.Spec), normal(found.Spec))
				require.Equal(s,
					job.Event{At: found.Events[i].At, Kind: job.EventRevived, Actor: revival.Actor}, found.Events[i])
				h := s.claimAll(id)[0]
				require.Equal(s, want, h.AttemptURL(), "of the claimed job")
				s.settleOne(h, dead)
			}
		}
	}},
	{"increments the version", func(s *suite) {
		s.endJob("a", dead)
		got, err := s.revive("a", 0)
		require.NoError(s, err)
		require.EqualValues(s, 2, got.Version)
	}},
	{"a job due now notifies, and its next attempt has the next number", func(s *suite) {
		s.endJob("a", dead)
		s.drainWakeups()
		got, err := s.revive("a", 0)
		require.NoError(s, err)
		require.Equal(s, job.Ready, got.State)
		s.waitNotified(s.queue)
		h := s.claimAll("a")[0]
		require.Equal(s, 1, h.Attempts)
		require.Zero(s, h.FailedAttempts)
		s.settleOne(h, delivered)
		got = s.get("a")
		require.Equal(s, 2, got.Attempts)
		require.Zero(s, got.FailedAttempts)
		require.Equal(s, []job.AttemptKind{job.KindAttempt, job.KindAttempt}, kinds(got))
		require.Equal(s, []job.EventKind{job.EventRevived}, eventKinds(got))
	}},
	{"a past expiry needs a new one, a future one stays", func(s *suite) {
		s.endJob("past", dead, expires(s.shortTime()))
		s.endJob("ahead", dead, expires(long))
		s.advance(s.shortTime() + 2*time.Millisecond)
		before := s.get("past")
		for _, delay := range []time.Duration{0, long} {
			_, err := s.revive("past", delay)
			require.ErrorIs(s, err, store.ErrExpired)
		}
		require.Equal(s, before, s.get("past"), "a refused revival changes nothing")
		_, err := s.revive("ahead", 2*long)
		require.ErrorIs(s, err, store.ErrExpired, "it would expire before it is due")
		token := store.NewToken()
		for range 2 {
			got := s.reviveAll(token,
				store.Revival{Ref: s.ref("past"), ExpiresIn: long},
				store.Revival{Ref: s.ref("ahead"), Delay: long, ExpiresIn: long / 2},
				store.Revival{Ref: s.ref("ahead")})
			require.NoError(s, got[0].Err)
			s.sameTime(s.now().Add(long), got[0].Job.ExpiresAt, "the new expiry")
			require.ErrorIs(s, got[1].Err, store.ErrExpired)
			require.NoError(s, got[2].Err)
			require.Equal(s, s.get("ahead").ExpiresAt, got[2].Job.ExpiresAt)
		}
		for _, h := range s.claimAll("past", "ahead") {
			require.False(s, expired(&h), h.ID)
		}
	}},
	{"refuses unfinished and unknown jobs", func(s *suite) {
		s.insertNew(s.entry("scheduled", delayed(long)), s.entry("running"))
		s.claimAll("running")
		_, err := s.revive("scheduled", 0)
		s.inState(err, job.Scheduled)
		_, err = s.revive("running", 0)
		s.inState(err, job.Running)
		s.insertNew(s.entry("ready"))
		_, err = s.revive("ready", 0)
		s.inState(err, job.Ready)
		_, err = s.revive("unknown", 0)
		require.ErrorIs(s, err, store.ErrNotFound)
	}},
	{"a repeated token returns the first result", func(s *suite) {
		s.endJob("a", dead)
		token := store.NewToken()
		for range 2 {
			got, err := s.reviveWith(token, store.Revival{Ref: s.ref("a"), Delay: long})
			require.NoError(s, err)
			require.Equal(s, 1, got.Generation)
		}
		require.Equal(s, 1, s.get("a").Generation)
		_, err := s.cancel("a")
		require.NoError(s, err)
		_, err = s.reviveWith(token, store.Revival{Ref: s.ref("a"), Delay: long})
		require.NoError(s, err)
		require.Equal(s, job.Cancelled, s.get("a").State, "a repeated call changes nothing")
	}},
	{"the id of a revived cancelled job is Existing", func(s *suite) {
		s.insertNew(s.entry("a"))
		_, err := s.cancel("a")
		require.NoError(s, err)
		_, err = s.revive("a", long)
		require.NoError(s, err)
		require.Equal(s, store.Existing, s.insert(s.entry("a"))[0].Outcome)
	}},
}
