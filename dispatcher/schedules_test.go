package dispatcher_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// every returns a change that sets a schedule.
func every(d time.Duration, spec job.Spec) func(*store.Schedule) error {
	return func(s *store.Schedule) error {
		s.ScheduleSettings = store.ScheduleSettings{
			Spec: schedule.Spec{Every: d}, Job: spec, Overlap: store.OverlapAllow,
			CatchUp: store.CatchUp{Window: time.Hour, Runs: store.CatchUpLast},
		}
		return nil
	}
}

func TestSchedule_DeliversItsJobsWithTheirSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		s := model()
		r := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 1)})
		spec := job.Spec{
			Queue: job.Queue{Topic: "report"}, URL: "https://shop.example/hook",
			Header:   map[string][]string{"Authorization": {"Bearer hunter2"}},
			BodyKind: job.BodyJSON, Body: []byte(`{"n":  1}`),
		}
		put, err := r.PutSchedule(t.Context(), job.DefaultNamespace, "daily", store.ChangeOptions{},
			every(time.Minute, spec))
		require.NoError(t, err)
		sealed, ok := job.Sealed(put.Job.Header["Authorization"])
		require.True(t, ok)
		require.NotContains(t, sealed, "hunter2")
		time.Sleep(2*time.Minute + time.Second)
		calls := rec.calls()
		require.Len(t, calls, 2)
		for _, c := range calls {
			tick := c.at.Truncate(time.Minute).UTC()
			require.Equal(t, job.TickID("daily", tick), c.Ref.ID)
			at, ok := job.ScheduledAt(c.Ref.ID, c.Queue)
			require.True(t, ok)
			require.Equal(t, tick, at)
			require.Equal(t, []string{"Bearer hunter2"}, c.Header["Authorization"])
			require.Equal(t, `{"n":  1}`, string(c.Body))
			require.Less(t, c.at.Sub(tick), 100*time.Millisecond)
		}
		found, err := r.Schedule(t.Context(), job.DefaultNamespace, "daily")
		require.NoError(t, err)
		require.Equal(t, job.Delivered, found.Last[1].JobState)

		run, err := r.RunSchedule(t.Context(), job.DefaultNamespace, "daily", "mia", nil)
		require.NoError(t, err)
		require.Equal(t, "mia", run.Job.CreatedBy)
		time.Sleep(time.Second)
		require.Equal(t, []string{"Bearer hunter2"}, rec.calls()[2].Header["Authorization"])
		require.Equal(t, run.Job.ID, rec.calls()[2].Ref.ID)

		_, err = r.PutSchedule(t.Context(), job.DefaultNamespace, "daily", store.ChangeOptions{},
			func(s *store.Schedule) error {
				s.Job.URL = "https://elsewhere.example/"
				return nil
			})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Len(t, rec.calls(), 3, "a sealed header is sent nowhere else")
	})
}

func TestSchedule_ReadsNoJobOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		r := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		_, err := r.PutSchedule(t.Context(), job.DefaultNamespace, "daily", store.ChangeOptions{},
			every(time.Minute, job.Spec{URL: "https://a.example/"}))
		require.NoError(t, err)
		page, err := r.List(t.Context(), store.Filter{Namespace: job.DefaultNamespace, Limit: 10})
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1)
		own := page.Jobs[0]
		require.Equal(t, job.KindSchedule, own.Kind)
		_, err = r.Get(t.Context(), own.Ref())
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = r.Cancel(t.Context(), own.Ref(), store.Cancellation{})
		require.ErrorIs(t, err, store.ErrNotFound, "only its schedule ends it")
		_, err = r.RunNow(t.Context(), own.Ref(), 0, "")
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestSchedule_RefusesAJobThatCouldNotBeRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{
			Store: model(), RegisterOnly: true, Declared: true,
			CheckURL: func(string) error { return &job.UndeclaredTopicError{Topic: "no"} },
		})
		put := func(spec job.Spec) string {
			_, err := r.PutSchedule(t.Context(), job.DefaultNamespace, "daily", store.ChangeOptions{},
				every(time.Minute, spec))
			return requireInvalid(t, err).Errors[0].Field
		}
		require.Equal(t, "/job/topic", put(job.Spec{URL: "https://a.example/"}), "an undeclared topic")
		_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, job.DefaultTopic, store.ChangeOptions{},
			func(*policy.Topic) error { return nil })
		require.NoError(t, err)
		require.Equal(t, "/job/url", put(job.Spec{}), "no URL")
		require.Equal(t, "/job/url", put(job.Spec{URL: "https://a.example/"}), "a refused URL")
		_, err = r.Schedule(t.Context(), job.DefaultNamespace, "daily")
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestSchedule_WaitsForTheQuotaOfItsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Store: model(), Deliverer: rec})
		_, err := r.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: job.Quota{Pending: 1}}, 0)
		require.NoError(t, err)
		_, err = r.PutSchedule(t.Context(), "shop", "daily", store.ChangeOptions{},
			every(time.Minute, job.Spec{URL: "https://a.example/"}))
		require.NoError(t, err)
		waiting := job.New{Spec: job.Spec{ID: "w", Queue: job.Queue{Namespace: "shop"}}, Delay: 65 * time.Second}
		r.register(t, waiting)
		time.Sleep(61 * time.Second)
		require.Empty(t, rec.calls())
		time.Sleep(30 * time.Second)
		require.Len(t, rec.calls(), 2, "the tick runs once there is room")
	})
}

func TestDeleteNamespace_RemovesSchedulesWithAPurgeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := withShop(t, model())
		_, err := d.PutSchedule(t.Context(), "shop", "daily", store.ChangeOptions{},
			every(time.Hour, job.Spec{URL: "https://a.example/"}))
		require.NoError(t, err)
		_, err = d.DeleteNamespace(t.Context(), store.NamespaceDeletion{Name: "shop"})
		require.Error(t, err)
		_, err = d.DeleteNamespace(t.Context(), store.NamespaceDeletion{Name: "shop", Purge: true})
		require.NoError(t, err)
		_, err = d.Schedule(t.Context(), "shop", "daily")
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestReseal_SealsTheHeadersOfSchedulesUnderTheNewKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}, Seal: box(t, 1)})
		spec := job.Spec{URL: "https://a.example/", Header: map[string][]string{"Authorization": {"Bearer hunter2"}}}
		put, err := r.PutSchedule(t.Context(), job.DefaultNamespace, "daily", store.ChangeOptions{},
			every(time.Hour, spec))
		require.NoError(t, err)
		require.NoError(t, r.stop())
		r = start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}, Seal: box(t, 2, 1)})
		time.Sleep(time.Second)
		found, err := r.Schedule(t.Context(), job.DefaultNamespace, "daily")
		require.NoError(t, err)
		require.NotEqual(t, put.Job.Header, found.Job.Header)
		sealed, _ := job.Sealed(found.Job.Header["Authorization"])
		require.Contains(t, sealed, keyID(t, 2))
		require.NoError(t, r.stop())
		r = start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}, Seal: box(t, 3)})
		time.Sleep(time.Second)
		same, err := r.Schedule(t.Context(), job.DefaultNamespace, "daily")
		require.NoError(t, err)
		require.Equal(t, found.Revision, same.Revision, "what cannot be opened is not written anew")
	})
}
