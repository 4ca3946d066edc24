package storetest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

var cancelCases = []testCase{
	{"ends a waiting job at once", func(s *suite) {
		s.insertNew(s.entry("scheduled", delayed(long)), s.entry("ready"))
		for _, id := range []string{"scheduled", "ready"} {
			got, err := s.cancel(id)
			require.NoError(s, err)
			require.Equal(s, job.Cancelled, got.State)
			require.Equal(s, job.ReasonCancelled, got.Reason)
			require.EqualValues(s, 2, got.Version)
			s.sameTime(s.now(), got.FinishedAt, "FinishedAt")
			require.Equal(s, []job.EventKind{job.EventCancelled}, eventKinds(s.get(id)))
		}
		s.claimAll()
	}},
	{"names its actor", func(s *suite) {
		s.insertNew(s.entry("running"), s.entry("waiting", delayed(long)))
		s.claimAll("running")
		for _, id := range []string{"running", "waiting"} {
			_, err := s.shard().Cancel(s.Context(), store.NewToken(), s.ref(id),
				store.Cancellation{Actor: `jan "ops" <ü>`})
			require.NoError(s, err)
			events := s.get(id).Events
			require.Len(s, events, 1)
			s.sameTime(s.now(), events[0].At, "At")
			require.Equal(s, []job.Event{{At: events[0].At, Kind: job.EventCancelled, Actor: `jan "ops" <ü>`}}, events)
		}
	}},
	{"is refused for another version than the required one", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b", delayed(long)))
		s.claimAll("a")
		for _, id := range []string{"a", "b"} {
			before := s.get(id)
			for _, wrong := range []int64{before.Version - 1, before.Version + 1} {
				if wrong == 0 {
					continue
				}
				_, err := s.shard().Cancel(s.Context(), store.NewToken(), s.ref(id),
					store.Cancellation{IfVersion: wrong})
				require.ErrorIs(s, err, store.ErrVersion)
				require.Equal(s, before, s.get(id))
			}
			got, err := s.shard().Cancel(s.Context(), store.NewToken(), s.ref(id),
				store.Cancellation{IfVersion: before.Version})
			require.NoError(s, err)
			require.True(s, got.State == job.Cancelled || got.CancelRequested)
			_, err = s.shard().Cancel(s.Context(), store.NewToken(), s.ref(id),
				store.Cancellation{IfVersion: before.Version})
			require.ErrorIs(s, err, store.ErrVersion, "the cancellation is a change")
		}
	}},
	{"does not change a cancelled or marked job", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b", delayed(long)))
		s.claimAll("a")
		for _, id := range []string{"a", "b"} {
			_, err := s.cancel(id)
			require.NoError(s, err)
			first := s.get(id)
			got, err := s.cancel(id)
			require.NoError(s, err)
			require.Equal(s, first.Progress, got.Progress)
			require.Equal(s, first, s.get(id))
		}
	}},
	{"marks a running job", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claimAll("a")[0]
		got, err := s.cancel("a")
		require.NoError(s, err)
		require.Equal(s, job.Running, got.State)
		require.True(s, got.CancelRequested)
		require.EqualValues(s, 2, got.Version)
		require.True(s, s.get("a").CancelRequested)
		s.settleOne(h, delivered)
		require.Equal(s, job.Delivered, s.get("a").State, "a success still delivers it")
	}},
	{"a marked job is cancelled by every verdict but Delivered", func(s *suite) {
		for id, v := range map[string]policy.Verdict{"again": retry(long), "dead": dead, "released": released} {
			s.insertNew(s.entry(id))
			h := s.claimAll(id)[0]
			_, err := s.cancel(id)
			require.NoError(s, err)
			item := settlement(h, v)
			item.Attempt.Verdict, item.Attempt.Error = v.Kind.String(), `,"v":"again"`
			require.NoError(s, s.settle(item)[0])
			got := s.get(id)
			require.Equal(s, job.Cancelled, got.State, id)
			require.Equal(s, job.ReasonCancelled, got.Reason, id)
			require.False(s, got.FinishedAt.IsZero(), id)
			require.Len(s, got.History, 1, id)
			want := v.Kind.String()
			if v.Kind == policy.Again {
				want = string(job.Cancelled) // none follows
			}
			require.Equal(s, want, got.History[0].Verdict)
			require.Equal(s, `,"v":"again"`, got.History[0].Error)
			require.Len(s, got.Events, 1, id)
		}
		require.EqualValues(s, 3, s.stats().Cancelled)
		require.Zero(s, s.stats().Dead)
		s.claimAll()
	}},
	{"refuses delivered, dead and unknown jobs", func(s *suite) {
		s.endJob("delivered", delivered)
		s.endJob("dead", dead)
		_, err := s.cancel("delivered")
		s.inState(err, job.Delivered)
		_, err = s.cancel("dead")
		s.inState(err, job.Dead)
		_, err = s.cancel("unknown")
		require.ErrorIs(s, err, store.ErrNotFound)
	}},
	{"a repeated token returns the first result", func(s *suite) {
		s.insertNew(s.entry("a"))
		token := store.NewToken()
		for range 2 {
			got, err := s.shard().Cancel(s.Context(), token, s.ref("a"), store.Cancellation{})
			require.NoError(s, err)
			require.Equal(s, job.Cancelled, got.State)
			require.EqualValues(s, 2, got.Version)
			s.sameTime(s.now(), got.FinishedAt, "FinishedAt")
		}
		_, err := s.revive("a", long)
		require.NoError(s, err)
		got, err := s.shard().Cancel(s.Context(), token, s.ref("a"), store.Cancellation{})
		require.NoError(s, err)
		require.EqualValues(s, 2, got.Version, "the first result is returned")
		require.Equal(s, job.Scheduled, s.get("a").State, "a repeated call changes nothing")
	}},
}

var replaceCases = []testCase{
	{"writes the specification that it is given", func(s *suite) {
		e := s.entry("a", delayed(long))
		e.Spec = fullSpec("a", s.queue)
		s.insertNew(e)
		wanted, first := s.get("a"), e.URL
		for i, change := range []func(*job.Spec){
			func(spec *job.Spec) { spec.URL = "https://new.example/" },
			func(spec *job.Spec) { spec.Header = map[string][]string{"X-New": {"1"}} },
			func(spec *job.Spec) {
				spec.BodyKind, spec.ContentType, spec.Body = job.BodyJSON, "application/json", []byte(`{"n":1}`)
			},
			func(spec *job.Spec) { spec.BodyKind, spec.ContentType, spec.Body = job.BodyNone, "", nil },
			func(spec *job.Spec) { spec.Labels = map[string]string{"new": "label"} },
			func(spec *job.Spec) { spec.Ladder = policy.Ladder{time.Minute} },
			func(spec *job.Spec) { spec.Retries = new(0) },
			func(spec *job.Spec) { spec.Timeout = 3 * time.Second },
			func(spec *job.Spec) { *spec = job.Spec{ID: spec.ID, Queue: spec.Queue, Method: "POST"} },
			func(spec *job.Spec) { *spec = fullSpec("a", s.queue) },
		} {
			change(&wanted.Spec)
			got, err := s.replace("a", store.Replacement{IfVersion: wanted.Version, Spec: &wanted.Spec})
			require.NoError(s, err)
			wanted.Version++
			wanted.FirstURL, wanted.CreatedBy = first, e.CreatedBy
			require.Equal(s, normal(wanted.Spec), normal(got.Spec), "answer to change %d", i)
			require.Equal(s, wanted.Progress, got.Progress)
			kept := s.get("a")
			require.Equal(s, normal(wanted.Spec), normal(kept.Spec), "after change %d", i)
			require.Len(s, kept.Events, i+1)
		}
		require.Equal(s, job.EventEdited, s.get("a").Events[0].Kind)
	}},
	{"keeps the specification when it is given none", func(s *suite) {
		e := s.entry("a", delayed(long))
		e.Spec = fullSpec("a", s.queue)
		s.insertNew(e)
		for _, r := range []store.Replacement{
			{},
			{Due: &job.TimeOrDelay{In: 2 * long}},
			{Expiry: &job.TimeOrDelay{In: 3 * long}},
			{Due: &job.TimeOrDelay{}},
		} {
			got, err := s.replace("a", r)
			require.NoError(s, err)
			require.Equal(s, e.Spec, got.Spec)
			require.Equal(s, e.Spec, s.get("a").Spec)
		}
	}},
	{"names its actor and the fields", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		for _, r := range []store.Replacement{
			{
				Kind: job.EventEdited, Due: &job.TimeOrDelay{In: long},
				Fields: []string{"url", "headers"}, Actor: "jan\n",
			},
			{Kind: job.EventRun, Due: &job.TimeOrDelay{}, Actor: "ci"},
			{Kind: job.EventEdited, Due: &job.TimeOrDelay{In: long}, Fields: []string{"body"}},
		} {
			_, err := s.replace("a", r)
			require.NoError(s, err)
			events := s.get("a").Events
			last := events[len(events)-1]
			s.sameTime(s.now(), last.At, "At")
			require.Equal(s, job.Event{At: last.At, Kind: r.Kind, Fields: r.Fields, Actor: r.Actor}, last)
		}
	}},
	{"keeps the first URL and who registered the job", func(s *suite) {
		for id, first := range map[string]string{"near": "http://" + s.queue.Lane +
			"/first", "far": "https://elsewhere.example/first?a=1"} {
			e := s.entry(id, delayed(long), at(first))
			e.CreatedBy = "shop-api"
			s.insertNew(e)
			require.Equal(s, "shop-api", s.get(e.ID).CreatedBy)
			for _, url := range []string{"http://" + s.queue.Lane + "/second", "", "https://third.example/", e.URL} {
				spec := s.get(e.ID).Spec
				spec.URL, spec.FirstURL, spec.CreatedBy = url, "https://ignored.example/", "ignored"
				got, err := s.replace(e.ID, store.Replacement{Spec: &spec, IfVersion: s.get(e.ID).Version})
				require.NoError(s, err)
				require.Equal(s, got.Spec, s.get(e.ID).Spec)
				require.Equal(s, url, got.URL)
				require.Equal(s, e.URL, got.AttemptURL())
				require.Equal(s, "shop-api", got.CreatedBy)
			}
		}
	}},
	{"keeps the id and the queue", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		spec := s.get("a").Spec
		for _, change := range []func(*job.Spec){
			func(spec *job.Spec) { spec.ID = "b" },
			func(spec *job.Spec) { spec.Topic = "other" },
			func(spec *job.Spec) { spec.Lane = "other" },
		} {
			moved := spec
			change(&moved)
			got, err := s.replace("a", store.Replacement{IfVersion: s.get("a").Version, Spec: &moved})
			require.NoError(s, err)
			require.Equal(s, spec, got.Spec)
			require.Equal(s, spec, s.get("a").Spec)
		}
	}},
	{"moves the due time, and the age with it", func(s *suite) {
		s.insertNew(s.entry("a"))
		got, err := s.replace("a", store.Replacement{Due: &job.TimeOrDelay{In: 2 * long}})
		require.NoError(s, err)
		require.Equal(s, job.Scheduled, got.State)
		s.sameTime(s.now().Add(2*long), got.DueAt, "DueAt")
		require.Equal(s, got.DueAt, got.FirstDueAt)
		s.claimAll()
		runAt := job.Millis(s.now().Add(long))
		got, err = s.replace("a", store.Replacement{Due: &job.TimeOrDelay{At: runAt}})
		require.NoError(s, err)
		require.Equal(s, runAt, got.DueAt)
		require.Equal(s, runAt, s.get("a").FirstDueAt)
		runAt = runAt.Add(-2 * long)
		got, err = s.replace("a", store.Replacement{Due: &job.TimeOrDelay{At: runAt}})
		require.NoError(s, err)
		require.Equal(s, job.Ready, got.State)
		s.sameTime(s.now(), got.DueAt, "DueAt")
		s.claimAll("a")
	}},
	{"keeps the age after the first attempt", func(s *suite) {
		s.insertNew(s.entry("a"))
		h := s.claimAll("a")[0]
		s.settleOne(h, retry(long))
		got, err := s.replace("a", store.Replacement{Due: &job.TimeOrDelay{In: 2 * long}})
		require.NoError(s, err)
		require.Equal(s, h.FirstDueAt, got.FirstDueAt)
		require.NotEqual(s, h.FirstDueAt, got.DueAt)
	}},
	{"run makes a job due now and notifies", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		s.drainWakeups()
		got, err := s.replace("a", store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}})
		require.NoError(s, err)
		require.Equal(s, job.Ready, got.State)
		require.EqualValues(s, 2, got.Version)
		s.waitNotified(s.queue)
		s.claimAll("a")
		require.Equal(s, []job.EventKind{job.EventRun}, eventKinds(s.get("a")))
	}},
	{"a postponed ready job is not claimed", func(s *suite) {
		s.insertNew(s.entry("a"), s.entry("b"))
		s.carry(store.CarryOptions{})
		_, err := s.replace("a", store.Replacement{Due: &job.TimeOrDelay{In: long}})
		require.NoError(s, err)
		s.claimAll("b")
	}},
	{"changes and removes the expiry", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		got, err := s.replace("a", store.Replacement{Expiry: &job.TimeOrDelay{In: 2 * long}})
		require.NoError(s, err)
		s.sameTime(s.now().Add(2*long), got.ExpiresAt, "ExpiresAt")
		at := job.Millis(s.now().Add(3 * long))
		got, err = s.replace("a", store.Replacement{Expiry: &job.TimeOrDelay{At: at}})
		require.NoError(s, err)
		require.Equal(s, at, got.ExpiresAt)
		_, err = s.replace("a", store.Replacement{Expiry: &job.TimeOrDelay{}})
		require.NoError(s, err)
		require.True(s, s.get("a").ExpiresAt.IsZero())
	}},
	{"compares IfVersion", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		spec := s.get("a").Spec
		spec.Timeout = time.Second
		got, err := s.replace("a", store.Replacement{IfVersion: 1, Spec: &spec})
		require.NoError(s, err)
		require.EqualValues(s, 2, got.Version)
		before := s.get("a")
		spec.Timeout = time.Minute
		for _, r := range []store.Replacement{
			{IfVersion: 1, Spec: &spec}, {IfVersion: 3, Spec: &spec}, {IfVersion: 1, Due: &job.TimeOrDelay{}},
		} {
			_, err = s.replace("a", r)
			require.ErrorIs(s, err, store.ErrVersion)
		}
		require.Equal(s, before, s.get("a"))
	}},
	{"refuses running, ended and unknown jobs", func(s *suite) {
		edit := func(id string) (job.Job, error) {
			e := s.entry(id)
			e.URL = "http://new.example/"
			return s.replace(id, store.Replacement{Spec: &e.Spec})
		}
		for id, v := range map[string]policy.Verdict{"delivered": delivered, "dead": dead} {
			s.endJob(id, v)
			_, err := edit(id)
			s.inState(err, job.State(id))
		}
		s.insertNew(s.entry("running"))
		s.claimAll("running")
		_, err := edit("running")
		s.inState(err, job.Running)
		s.insertNew(s.entry("cancelled", delayed(long)))
		_, err = s.cancel("cancelled")
		require.NoError(s, err)
		_, err = edit("cancelled")
		s.inState(err, job.Cancelled)
		_, err = edit("unknown")
		require.ErrorIs(s, err, store.ErrNotFound)
		require.Empty(s, s.get("running").Events)
	}},
	{"a repeated token returns the first result", func(s *suite) {
		s.insertNew(s.entry("a", delayed(long)))
		token := store.NewToken()
		for range 2 {
			got, err := s.shard().Replace(s.Context(), token, s.ref("a"),
				store.Replacement{Kind: job.EventEdited, IfVersion: 1, Due: &job.TimeOrDelay{In: 2 * long}})
			require.NoError(s, err)
			require.EqualValues(s, 2, got.Version)
		}
		require.Len(s, s.get("a").Events, 1)
	}},
}

// normal makes empty and nil values equal.
func normal(spec job.Spec) job.Spec {
	if len(spec.Body) == 0 {
		spec.Body = nil
	}
	if len(spec.Header) == 0 {
		spec.Header = nil
	}
	if len(spec.Labels) == 0 {
		spec.Labels = nil
	}
	if len(spec.Ladder) == 0 {
		spec.Ladder = nil
	}
	return spec
}
