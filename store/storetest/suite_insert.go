package storetest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

var insertCases = []testCase{
	{"returns one result per job, in order", func(s *suite) {
		s.insertNew(s.entry("b"))
		got := s.insert(s.entry("a"), s.entry("b"), s.entry("c", delayed(long)))
		require.Equal(s, []store.Outcome{store.Created, store.Existing, store.Created},
			[]store.Outcome{got[0].Outcome, got[1].Outcome, got[2].Outcome})
		for i, id := range []string{"a", "b", "c"} {
			require.Equal(s, id, got[i].Job.ID)
			require.Empty(s, got[i].Job.History)
		}
		require.Equal(s, job.Ready, got[0].Job.State)
		require.Equal(s, job.Scheduled, got[2].Job.State)
	}},
	{"stores the job as given", func(s *suite) {
		e := s.entry("full", delayed(90*time.Minute), expires(2*time.Hour))
		e.Spec = fullSpec(e.ID, s.queue)
		before := s.now()
		s.insertNew(e)
		got := s.get("full")
		require.Equal(s, e.Spec, got.Spec)
		s.sameTime(before, got.CreatedAt, "CreatedAt")
		require.Equal(s, got.CreatedAt.Add(90*time.Minute), got.DueAt)
		require.Equal(s, got.DueAt, got.FirstDueAt)
		require.Equal(s, got.CreatedAt.Add(2*time.Hour), got.ExpiresAt)
		require.Equal(s, job.Progress{
			State: job.Scheduled, CreatedAt: got.CreatedAt, DueAt: got.DueAt, FirstDueAt: got.FirstDueAt,
			ExpiresAt: got.ExpiresAt, Version: 1,
		}, got.Progress)
		require.Empty(s, got.History)
	}},
	{"leaves unset fields unset", func(s *suite) {
		bare := store.NewJob{New: job.New{Spec: job.Spec{ID: "bare", Queue: s.queue}}}
		none := store.NewJob{New: job.New{Spec: job.Spec{
			ID: "none", Queue: s.queue,
			Terms: policy.Terms{Retries: new(0)},
		}}}
		s.insertNew(bare, none)
		got := s.get("bare")
		require.Nil(s, got.Retries)
		require.Zero(s, got.Timeout)
		require.Empty(s, got.Ladder)
		require.Empty(s, got.Header)
		require.Empty(s, got.Labels)
		require.Empty(s, got.Body)
		require.True(s, got.ExpiresAt.IsZero())
		require.True(s, got.FinishedAt.IsZero())
		require.Equal(s, new(0), s.get("none").Retries)
	}},
	{"the same job again is Existing and changes nothing", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		first := s.get("a")
		s.advance(2 * time.Millisecond)
		got := s.insert(s.entry("a", delayed(long)))[0]
		require.Equal(s, store.Existing, got.Outcome)
		require.Equal(s, first.Progress, got.Job.Progress)
		require.Equal(s, first, s.get("a"))
		require.EqualValues(s, 1, s.stats().Registered)
	}},
	{"another job under a known id is a Conflict and changes nothing", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		first := s.get("a")
		require.Equal(s, store.Conflict, s.insert(s.entry("a"))[0].Outcome)
		require.Equal(s, store.Conflict, s.insert(s.entry("a", delayed(long), in(s.laneQueue(1))))[0].Outcome)
		require.Equal(s, first, s.get("a"))
		require.EqualValues(s, 1, s.stats().Registered)
	}},
	{"Existing returns the job's current state", func(s *suite) {
		s.endJob("a", dead)
		got := s.insert(s.entry("a"))[0]
		require.Equal(s, store.Existing, got.Outcome)
		require.Equal(s, job.Dead, got.Job.State)
		require.Equal(s, policy.ReasonGaveUp, got.Job.Reason)
		require.Empty(s, got.Job.History)
	}},
	{"matches an edited job by its first registration", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		_, err := s.edit("a", func(spec *job.Spec) { spec.URL = "http://other.example/" })
		require.NoError(s, err)
		got := s.insert(s.entry("a", delayed(long)))[0]
		require.Equal(s, store.Existing, got.Outcome)
		require.Equal(s, "http://other.example/", got.Job.URL)
	}},
	{"the id of a cancelled job is a Conflict", func(s *suite) {
		s.insertNew(s.entry("a"))
		_, err := s.cancel("a")
		require.NoError(s, err)
		got := s.insert(s.entry("a"))[0]
		require.Equal(s, store.Conflict, got.Outcome)
		require.Equal(s, job.Cancelled, got.Job.State)
	}},
	{"handles duplicate ids in one call in order", func(s *suite) {
		got := s.insert(s.entry("a", body("one")), s.entry("a", body("one")), s.entry("a", body("two")))
		require.Equal(s, store.Created, got[0].Outcome)
		require.Equal(s, store.Existing, got[1].Outcome)
		require.Equal(s, store.Conflict, got[2].Outcome)
		require.Equal(s, "one", string(s.get("a").Body))
	}},
	{"run_at in the past means now", func(s *suite) {
		e := s.entry("a")
		e.RunAt = s.now().Add(-time.Hour)
		s.insertNew(e)
		got := s.get("a")
		require.Equal(s, got.CreatedAt, got.DueAt)
		require.Equal(s, got.CreatedAt, got.FirstDueAt)
		s.claimAll("a")
	}},
	{"run_at is kept to the millisecond and never early", func(s *suite) {
		e := s.entry("a")
		e.RunAt = job.Millis(s.now().Add(long))
		f := s.entry("b")
		f.RunAt = e.RunAt.Add(300 * time.Microsecond)
		s.insertNew(e, f)
		require.Equal(s, e.RunAt, s.get("a").DueAt)
		require.False(s, s.get("b").DueAt.Before(f.RunAt), "due before the requested time")
		s.claimAll()
	}},
	{"keeps expires_at", func(s *suite) {
		e := s.entry("a")
		e.ExpiresAt = job.Millis(s.now().Add(long))
		s.insertNew(e)
		require.Equal(s, e.ExpiresAt, s.get("a").ExpiresAt)
	}},
	{"a due job notifies its queue and can be claimed without a carrier", func(s *suite) {
		s.insertNew(s.entry("a"))
		require.Equal(s, []job.Queue{s.queue}, s.wait(timeLimit))
		s.claimAll("a")
	}},
	{"a later job does not notify and cannot be claimed", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		require.Empty(s, s.wait(shortWait))
		s.claimAll()
		s.carry(store.CarryOptions{})
		s.claimAll()
	}},
	{"a repeated token returns the first result", func(s *suite) {
		token := store.NewToken()
		entries := []store.NewJob{s.entry("a"), s.entry("b")}
		first, err := s.shard().Insert(s.Context(), token, entries)
		require.NoError(s, err)
		second, err := s.shard().Insert(s.Context(), token, entries)
		require.NoError(s, err)
		for i := range first {
			require.Equal(s, first[i].Outcome, second[i].Outcome)
			require.Equal(s, first[i].Job.ID, second[i].Job.ID)
		}
		require.EqualValues(s, 2, s.stats().Registered)
	}},
	{"accepts MaxBatch jobs", func(s *suite) {
		var entries []store.NewJob
		for i := range store.MaxBatch {
			entries = append(entries, s.entry(fmt.Sprintf("job-%03d", i)))
		}
		s.insertNew(entries...)
		require.EqualValues(s, store.MaxBatch, s.stats().Registered)
		held := s.claim(claimOf(s.queue)).Jobs
		require.Len(s, held, min(store.MaxBatch, s.Defaults.LaneConcurrency))
	}},
	{"Known reports which ids an insert would find, and which jobs have ended", func(s *suite) {
		s.endJob("delivered", delivered)
		s.endJob("dead", dead)
		s.endJob("revived", dead)
		_, err := s.revive("revived", 0)
		require.NoError(s, err)
		s.insertNew(s.entry("a"), s.entry("cancelled", delayed(long)))
		_, err = s.cancel("cancelled")
		require.NoError(s, err)
		known := func(ids ...string) []store.IDStatus {
			var refs []job.Ref
			for _, id := range ids {
				refs = append(refs, s.ref(id))
			}
			got, err := s.shard().Known(s.Context(), append(refs, job.Ref{Namespace: "other", ID: "a"}))
			require.NoError(s, err)
			require.False(s, got[len(ids)].Known())
			return got[:len(ids)]
		}
		unfinished := store.IDStatus{Exists: true}
		require.Equal(s, []store.IDStatus{{}, unfinished, unfinished}, known("x", "a", "revived"))
		require.Equal(s, []store.IDStatus{
			{Exists: true, Ended: job.Delivered},
			{Exists: true, Ended: job.Dead},
			{Exists: true, Ended: job.Cancelled},
		},
			known("delivered", "dead", "cancelled"))
		s.claimAll("revived", "a")
		require.Equal(s, []store.IDStatus{unfinished, unfinished}, known("a", "revived"), "claimed")
	}},
	{"namespaces are isolated", func(s *suite) {
		theirs := s.queueOf("other", s.queue.Topic, 0)
		s.insertNew(s.entry("a", body("mine")), s.entry("a", body("theirs"), in(theirs)))
		require.Equal(s, "mine", string(s.get("a").Body))
		_, err := s.cancel("a")
		require.NoError(s, err)
		got, err := s.shard().Get(s.Context(), job.Ref{Namespace: "other", ID: "a"})
		require.NoError(s, err)
		require.Equal(s, job.Ready, got.State)
		require.Equal(s, "theirs", string(got.Body))
		require.EqualValues(s, 1, s.stats().Registered)
		require.Empty(s, s.list(store.Filter{Namespace: "third", Topic: s.queue.Topic, States: []job.State{job.Ready}}))
	}},
}

// fullSpec sets every field of a job, with bytes and letters that a careless encoding would lose.
func fullSpec(id string, q job.Queue) job.Spec {
	return job.Spec{
		ID: id, Queue: q, URL: "https://shop.example/hooks?a=1&b=%2F", Method: "PATCH",
		Header:      map[string][]string{"X-Tenant": {"42", "43"}, "X-Name": {"Zoë \"'"}},
		ContentType: "application/json; charset=utf-8", BodyKind: job.BodyBase64, Body: []byte("{\x00\xff\r\n\"ü\"}"),
		Labels: map[string]string{"customer": "4 2", "empty": ""},
		Terms: policy.Terms{
			Ladder: policy.Ladder{time.Millisecond, 15 * time.Second, 30 * 24 * time.Hour}, Retries: new(7),
			Timeout: 1500 * time.Millisecond, OnDelivered: &policy.Callback{URL: "https://owner.example/delivered"},
			OnDead: &policy.Callback{
				URL: "https://owner.example/dead?a=1", Method: "PUT",
				Headers: map[string][]string{"X-Owner": {"1", "2"}},
				Retries: new(0), Timeout: time.Second, Include: []string{policy.IncludeBody, policy.IncludeQuery},
			},
		},
		Kind: "callback", Origin: "parent", CreatedBy: "shop-api",
		Unknown: []byte{60, 2, 'v', '2'}, // a field of a newer version
	}
}
