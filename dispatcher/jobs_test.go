package dispatcher_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestEdit_ChangesSpecificationAndTimes(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		r := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		made := r.register(t, inAnHour("https://a.example/x", map[string][]string{"X-A": {"1"}}))
		got, err := r.Edit(t.Context(), made.Ref(), job.Edit{
			Fields: []string{"retries", "body"},
			Spec: job.Spec{
				ID: "other", Queue: job.Queue{Lane: "other"}, Terms: policy.Terms{Retries: new(3)},
				BodyKind: job.BodyText, Body: []byte("new"),
			},
			Due: &job.TimeOrDelay{In: 2 * time.Hour}, Expiry: &job.TimeOrDelay{In: 3 * time.Hour}, Actor: "jan",
		})
		require.NoError(t, err)
		wanted := made.Spec
		wanted.Retries, wanted.BodyKind, wanted.Body = new(3), job.BodyText, []byte("new")
		wanted.ContentType = job.BodyText.ContentType()
		require.Equal(t, []string{"body", "retries", "run_at", "expires_at"}, r.get(t, made.Ref()).Events[0].Fields)
		require.Equal(t, "jan", r.get(t, made.Ref()).Events[0].Actor)
		require.Equal(t, wanted, got.Spec, "the id and the queue stay")
		require.Equal(t, made.DueAt.Add(time.Hour), got.DueAt.Round(time.Minute))
		require.Equal(t, got.DueAt.Add(time.Hour), got.ExpiresAt)

		got, err = r.Edit(t.Context(), made.Ref(), job.Edit{IfVersion: got.Version, Expiry: &job.TimeOrDelay{}})
		require.NoError(t, err)
		require.Equal(t, wanted, got.Spec)
		require.True(t, got.ExpiresAt.IsZero())
		_, err = r.Edit(t.Context(), made.Ref(), job.Edit{IfVersion: got.Version - 1, Due: &job.TimeOrDelay{}})
		require.ErrorIs(t, err, store.ErrVersion)
		_, err = r.RunNow(t.Context(), made.Ref(), got.Version-1, "jan")
		require.ErrorIs(t, err, store.ErrVersion)
		got, err = r.RunNow(t.Context(), made.Ref(), got.Version, "jan")
		require.NoError(t, err)
		require.Equal(t, job.Ready, got.State)
		require.Equal(t, []job.EventKind{job.EventEdited, job.EventEdited, job.EventRun}, kindsOf(r.get(t, made.Ref())))
	})
}

func TestEdit_FewerRetriesThanFailedAttemptsLeaveOneAttempt(t *testing.T) {
	editTo := func(field string, terms policy.Terms) func(*testing.T, *fixture, job.Ref) error {
		return func(t *testing.T, r *fixture, ref job.Ref) error {
			_, err := r.Edit(t.Context(), ref, job.Edit{Fields: []string{field}, Spec: job.Spec{Terms: terms}})
			return err
		}
	}
	for name, lower := range map[string]func(*testing.T, *fixture, job.Ref) error{
		"retries of the job": editTo("retries", policy.Terms{Retries: new(0)}),
		"ladder of the job":  editTo("ladder", policy.Terms{Ladder: policy.Ladder{time.Second}}),
		"retries of the topic": func(t *testing.T, r *fixture, _ job.Ref) error {
			_, err := r.ChangeTopic(t.Context(), ofTopic.Namespace, ofTopic.Topic, store.ChangeOptions{},
				func(p *policy.Topic) error { p.Retries = new(1); return nil })
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			rec := &receiver{answer: status(500)}
			r := start(t, dispatcher.Options{Deliverer: rec})
			_, err := r.ChangeTopic(t.Context(), ofTopic.Namespace, ofTopic.Topic, store.ChangeOptions{},
				func(p *policy.Topic) error {
					p.Ladder = policy.Ladder{time.Second, time.Second, time.Hour, time.Hour}
					return nil
				})
			require.NoError(t, err)
			j := r.register(t, job.New{Spec: job.Spec{Queue: ofLane, URL: "https://shop.example/"}})
			time.Sleep(time.Minute)
			require.Len(t, rec.calls(), 3)

			require.NoError(t, lower(t, r, j.Ref()), name)
			got := r.explain(t, j)
			require.Contains(t, got.WaitingFor.Detail(), "failed attempt 3 for its last one", name)
			require.Zero(t, got.Effective.RetriesLeft, name)
			_, err = r.RunNow(t.Context(), j.Ref(), 0, "")
			require.NoError(t, err)
			time.Sleep(time.Second)
			require.Len(t, rec.calls(), 4, name)
			require.Zero(t, rec.calls()[3].RetriesLeft, name)
			ended := r.get(t, j.Ref())
			require.Equal(t, policy.ReasonExhausted, ended.Reason, name)
			require.Equal(t, 4, ended.Attempts, name)
		})
	}
}

func kindsOf(j job.Job) []job.EventKind {
	var kinds []job.EventKind
	for _, e := range j.Events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func TestEdit_RetriesAfterConflictsButNotForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := model()
		s := &concurrentEditStore{Store: base}
		r := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		made := r.register(t, inAnHour("https://a.example/x", nil))
		conflicts := 0
		s.do = func() {
			conflicts++
			_, err := base.Shards()[0].Replace(t.Context(), store.NewToken(), made.Ref(),
				store.Replacement{Kind: job.EventEdited})
			require.NoError(t, err)
		}
		_, err := r.Edit(t.Context(), made.Ref(), editOf("https://b.example/"))
		require.ErrorIs(t, err, store.ErrContended)
		require.Greater(t, conflicts, 2)
		require.Less(t, conflicts, 100)

		conflicts = 0
		bound := editOf("https://b.example/")
		bound.IfVersion = r.get(t, made.Ref()).Version
		_, err = r.Edit(t.Context(), made.Ref(), bound)
		require.ErrorIs(t, err, store.ErrVersion)
		require.Equal(t, 1, conflicts, "a version that the caller names is not replaced by another")
		require.Equal(t, "https://a.example/x", r.get(t, made.Ref()).URL)
	})
}

func TestEdit_RefusesLabelsOfJobsThatRingbackCreated(t *testing.T) {
	r := start(t, dispatcher.Options{RegisterOnly: true})
	made := r.register(t, job.New{
		Spec:  job.Spec{ID: "rb:a:0", Kind: job.KindCallback, Labels: map[string]string{job.LabelTopic: "orders"}},
		Delay: time.Hour,
	})
	for _, labels := range []map[string]string{{job.LabelTopic: "mails"}, {"a": "b"}, nil} {
		_, err := r.Edit(t.Context(), made.Ref(), job.Edit{Fields: []string{"labels"}, Spec: job.Spec{Labels: labels}})
		require.Equal(t, "/labels", requireInvalid(t, err).Errors[0].Field)
	}
	require.Equal(t, made.Labels, r.get(t, made.Ref()).Labels)
	got, err := r.Edit(t.Context(), made.Ref(), editOf("https://b.example/"))
	require.NoError(t, err)
	require.Equal(t, made.Labels, got.Labels)
}
