package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// secretHeaders returns headers, two of them with secrets.
func secretHeaders() map[string][]string {
	return map[string][]string{"Cookie": {"hunter2"}, "Authorization": {"Bearer hunter2"}, "X-A": {"1"}}
}

// inAnHour is a job that waits at a URL with headers.
func inAnHour(url string, headers map[string][]string) job.New {
	return job.New{
		Spec:  job.Spec{Queue: job.Queue{Topic: "orders", Lane: "a"}, URL: url, Header: headers},
		Delay: time.Hour,
	}
}

// editOf is an edit of the URL, headersOf one of the headers.
func editOf(url string) job.Edit { return job.Edit{Fields: []string{"url"}, Spec: job.Spec{URL: url}} }

func headersOf(headers map[string][]string) job.Edit {
	return job.Edit{Fields: []string{"headers"}, Spec: job.Spec{Header: headers}}
}

// requireSecretsRejected requires an error for each of the two secrets.
func requireSecretsRejected(t *testing.T, err error) {
	t.Helper()
	var fields []string
	for _, f := range requireInvalid(t, err).Errors {
		fields = append(fields, f.Field)
		require.Contains(t, f.Detail, "different origin")
	}
	require.Equal(t, []string{"/headers/Authorization", "/headers/Cookie"}, fields)
	require.NotContains(t, err.Error(), "hunter2")
}

func TestOrigin_JobSecretsDoNotFollowTheURL(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		r := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		made := r.register(t, inAnHour("https://a.example/x", secretHeaders()))
		for _, url := range []string{"https://b.example/x", "http://a.example/x", "https://a.example:444/x"} {
			_, err := r.Edit(t.Context(), made.Ref(), editOf(url))
			requireSecretsRejected(t, err)
			bound := editOf(url)
			bound.IfVersion = made.Version
			_, err = r.Edit(t.Context(), made.Ref(), bound)
			requireSecretsRejected(t, err)
		}
		current := r.get(t, made.Ref())
		require.Equal(t, made.Version, current.Version, "nothing was changed")
		require.Equal(t, "https://a.example/x", current.URL)

		headers := maps.Clone(current.Header)
		headers["X-A"] = []string{"2"}
		partly := job.Edit{
			Fields: []string{"url", "headers"},
			Spec:   job.Spec{URL: "https://b.example/x", Header: headers},
		}
		_, err := r.Edit(t.Context(), made.Ref(), partly)
		requireSecretsRejected(t, err)

		moved, err := r.Edit(t.Context(), made.Ref(), editOf("HTTPS://A.example:443/y"))
		require.NoError(t, err, "the origin is the same")
		require.Equal(t, made.Header, moved.Header)
		require.NotEqual(t, secretHeaders(), moved.Header, "they are bound to it")
		for _, headers := range []map[string][]string{{"Authorization": {"Bearer new"}}, {}} {
			url := fmt.Sprintf("https://%d.example/", len(headers))
			moved, err = r.Edit(t.Context(), made.Ref(), job.Edit{
				Fields: []string{"url", "headers"}, Spec: job.Spec{URL: url, Header: headers},
			})
			require.NoError(t, err, "a resent secret may go there")
			require.Equal(t, url, moved.URL)
			require.Len(t, moved.Header, len(headers))
		}
		moved, err = r.Edit(t.Context(), made.Ref(), editOf("https://c.example/"))
		require.NoError(t, err, "there is no secret any more")
		require.Equal(t, "https://c.example/", moved.URL)
	})
}

func TestOrigin_JobWithoutURLKeepsItsSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{RegisterOnly: true})
		changeLane(t, r, job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "a"}, func(l *policy.Lane) {
			l.URL = "https://a.example/"
		})
		made := r.Register(t.Context(), []job.New{inAnHour("", secretHeaders())})[0]
		require.NoError(t, made.Err)
		_, err := r.Edit(t.Context(), made.Job.Ref(), editOf("https://b.example/"))
		requireSecretsRejected(t, err)
	})
}

func TestOrigin_ChangeIsRejectedLikeOtherEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{RegisterOnly: true})
		made := r.register(t, inAnHour("https://a.example/x", nil))
		late := editOf("https://b.example/")
		late.IfVersion = made.Version + 1
		_, err := r.Edit(t.Context(), made.Ref(), late)
		require.ErrorIs(t, err, store.ErrVersion)
		_, err = r.Edit(t.Context(), job.Ref{Namespace: job.DefaultNamespace, ID: "unknown"},
			editOf("https://b.example/"))
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = r.Cancel(t.Context(), made.Ref(), store.Cancellation{})
		require.NoError(t, err)
		_, err = r.Edit(t.Context(), made.Ref(), editOf("https://b.example/"))
		var state *store.StateError
		require.ErrorAs(t, err, &state)
		require.Equal(t, job.Cancelled, state.State)
	})
}

// concurrentEditStore calls a hook between Get and Edit.
type concurrentEditStore struct {
	store.Store
	do func()
}

func (b *concurrentEditStore) Shards() []store.Shard {
	return storetest.WrapShards(b.Store,
		func(_ int, next store.Shard) store.Shard { return concurrentEditShard{next, b} })
}

type concurrentEditShard struct {
	store.Shard
	*concurrentEditStore
}

func (s concurrentEditShard) Replace(
	ctx context.Context, token store.Token, ref job.Ref, replacement store.Replacement,
) (job.Job, error) {
	if s.do != nil {
		s.do()
	}
	return s.Shard.Replace(ctx, token, ref, replacement)
}

func TestOrigin_ConcurrentSecretIsNotMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := model()
		s := &concurrentEditStore{Store: base}
		r := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		made := r.register(t, inAnHour("https://a.example/x", nil))
		change := func(headers map[string][]string) func() {
			return func() {
				_, err := storetest.Edit(t.Context(), base.Shards()[0], store.NewToken(), made.Ref(),
					func(spec *job.Spec) { spec.Header = headers })
				require.NoError(t, err)
				s.do = nil
			}
		}
		s.do = change(map[string][]string{"X-A": {"1"}})
		moved, err := r.Edit(t.Context(), made.Ref(), editOf("https://b.example/"))
		require.NoError(t, err, "it is made again over the other change")
		require.Equal(t, map[string][]string{"X-A": {"1"}}, moved.Header)

		s.do = change(secretHeaders())
		_, err = r.Edit(t.Context(), made.Ref(), editOf("https://c.example/"))
		requireSecretsRejected(t, err)

		s.do = change(nil)
		bound := editOf("https://b.example/y")
		bound.IfVersion = r.get(t, made.Ref()).Version
		_, err = r.Edit(t.Context(), made.Ref(), bound)
		require.ErrorIs(t, err, store.ErrVersion, "an explicit version is required")
	})
}

func TestOrigin_RevivalElsewhereSendsNoSecrets(t *testing.T) {
	named := make([]string, 0, 120)
	for i := range 120 {
		named = append(named, fmt.Sprintf("orders-a-500-%04d", i))
	}
	for name, ids := range map[string][]string{"all": nil, "ids": append(named, "unknown")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, dispatcher.Options{Store: sharded(4), Deliverer: &receiver{answer: statusByPath}})
				r.registerDead(t, 120, "orders/a", 500, func(i int, n *job.New) {
					switch i % 4 {
					case 0: // its secrets are for another host
						n.Header = secretHeaders()
					case 1: // secrets for the host that it is sent to
						n.Header, n.URL = secretHeaders(), "https://new.example/500"
					case 2:
						n.Header = map[string][]string{"X-A": {"1"}}
					}
				})
				r.pauseTopics(t, "orders")
				w := r.work(t, store.WorkOrder{
					Action: store.WorkRevive, IDs: ids, URL: "https://new.example/fixed",
					Rate: policy.Rate{Starts: 1, Per: time.Second},
				})
				require.EqualValues(t, 120+len(ids)/121, w.Matched)
				require.EqualValues(t, 90, w.Done)
				require.EqualValues(t, 30, w.Failed)
				for _, f := range w.Failures {
					if f.ID == "unknown" {
						continue
					}
					require.Contains(t, f.Reason, "/headers/Authorization is for a different origin than url")
					left := r.get(t, job.Ref{Namespace: job.DefaultNamespace, ID: f.ID})
					require.Equal(t, job.Dead, left.State)
					require.Equal(t, "https://x.example/500", left.URL)
				}
				w = r.work(t, store.WorkOrder{Action: store.WorkRevive, IDs: ids, URL: "https://x.example/other"})
				require.EqualValues(t, 30, w.Done, "the same host may have them")
			})
		})
	}
}

// Work stores secret headers sealed, and binds them to the origin of each job that it changes.
func TestWork_SendsNewSecretHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: statusByPath}
		s := sharded(2)
		r := start(t, dispatcher.Options{Store: s, Deliverer: rec, Seal: box(t, 1)})
		r.registerDead(t, 20, "orders/a", 200,
			func(i int, n *job.New) { n.URL = fmt.Sprintf("https://%d.example/200", i) })
		sent := len(rec.calls())
		header := map[string][]string{"Authorization": {"Bearer new"}, "X-A": {"2"}}
		delivered := store.Filter{States: []job.State{job.Delivered}}
		w := r.work(t, store.WorkOrder{Action: store.WorkRevive, Filter: delivered, Header: header})
		require.Equal(t, store.WorkCounts{Matched: 20, Done: 20}, w.WorkCounts)
		time.Sleep(time.Minute)
		calls := rec.calls()[sent:]
		require.Len(t, calls, 20)
		for _, c := range calls {
			require.Equal(t, header, c.Header)
		}
		sent += len(calls)

		w = r.work(t, store.WorkOrder{
			Action: store.WorkRevive, Filter: delivered, Header: header,
			URL: "https://new.example/200", ExpiresIn: time.Hour,
		})
		require.EqualValues(t, 20, w.Done)
		time.Sleep(time.Minute)
		calls = rec.calls()[sent:]
		require.Len(t, calls, 20)
		for _, c := range calls {
			require.Equal(t, "https://new.example/200", c.URL)
			require.Equal(t, header, c.Header)
		}

		waiting := r.register(t, inAnHour("https://a.example/200", secretHeaders()))
		edit := job.Edit{
			Fields: []string{"headers", "retries"},
			Spec:   job.Spec{Header: header, Terms: policy.Terms{Retries: new(0)}}, Due: &job.TimeOrDelay{},
		}
		require.EqualValues(t, 1,
			r.work(t, store.WorkOrder{Action: store.WorkEdit, Filter: store.Filter{Topic: "orders"}, Edit: &edit}).Done)
		time.Sleep(time.Minute)
		last := rec.calls()[len(rec.calls())-1]
		require.Equal(t, waiting.ID, last.Ref.ID)
		require.Equal(t, header, last.Header)
		require.Equal(t, []string{"headers", "retries", "run_at"}, r.get(t, waiting.Ref()).Events[0].Fields)
		requireSecretsRejectedAfter(t, r)
	})
}

// requireSecretsRejectedAfter requires that headers which work has set stay on the origin of their job.
func requireSecretsRejectedAfter(t *testing.T, r *fixture) {
	t.Helper()
	w := r.work(t, store.WorkOrder{
		Action: store.WorkRevive, Filter: store.Filter{States: []job.State{job.Delivered}},
		URL: "https://thief.example/200",
	})
	require.EqualValues(t, 21, w.Failed)
	require.Contains(t, w.Failures[0].Reason, "/headers/Authorization is for a different origin")
}

// The origin is checked before the revival. Secrets that a dead letter gets in between are not sent elsewhere either.
func TestOrigin_RevivalSendsNoSecretsSetSinceTheCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rec := &slowListStore{Store: model()}, &receiver{answer: statusByPath}
		r := start(t, dispatcher.Options{Store: s, Deliverer: rec})
		r.registerDead(t, 1, "orders/a", 500)
		s.before = func(items []store.Revival) {
			s.before = nil
			revived, err := r.Revive(t.Context(), store.Revival{Ref: items[0].Ref, Delay: time.Minute})
			require.NoError(t, err)
			_, err = r.Edit(t.Context(), revived.Ref(), headersOf(secretHeaders()))
			require.NoError(t, err)
			time.Sleep(2 * time.Minute)
			require.Equal(t, job.Dead, r.get(t, revived.Ref()).State)
		}
		require.EqualValues(t, 1,
			r.work(t, store.WorkOrder{Action: store.WorkRevive, URL: "https://new.example/200"}).Skipped)
		time.Sleep(time.Minute)
		for _, c := range rec.calls() {
			require.Equal(t, "https://x.example/500", c.URL)
		}
	})
}

func TestRevive_SecretHeadersStayOnTheirOrigin(t *testing.T) {
	d := idleDispatcher(t, dispatcher.Options{CheckURL: func(target string) error {
		if strings.Contains(target, "blocked") {
			return errors.New("must not be called")
		}
		return nil
	}})
	ended := func(id string) job.Ref {
		registered := d.Register(t.Context(), []job.New{{Spec: job.Spec{
			ID: id, URL: "https://a.example/x",
			Header: map[string][]string{"Authorization": {"Bearer hunter2"}, "X-A": {"1"}},
		}, Delay: time.Hour}})[0]
		require.NoError(t, registered.Err)
		_, err := d.Cancel(t.Context(), registered.Job.Ref(), store.Cancellation{})
		require.NoError(t, err)
		return registered.Job.Ref()
	}
	refuse := func(revival store.Revival, field string) {
		t.Helper()
		_, err := d.Revive(t.Context(), revival)
		var invalid *job.InvalidError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, field, invalid.Errors[0].Field)
		kept, err := d.Get(t.Context(), revival.Ref)
		require.NoError(t, err)
		require.Equal(t, job.Cancelled, kept.State)
	}
	ref := ended("a")
	refuse(store.Revival{Ref: ref, URL: "https://b.example/"}, "/headers/Authorization")
	refuse(store.Revival{Ref: ref, URL: "https://blocked.example/"}, "/url")
	got, err := d.Revive(t.Context(), store.Revival{Ref: ref, URL: "https://a.example/y"})
	require.NoError(t, err)
	require.Equal(t, "https://a.example/y", got.URL)
	_, err = d.Revive(t.Context(), store.Revival{Ref: ref, URL: "https://a.example/"})
	require.Equal(t, &store.StateError{State: job.Ready}, err)

	got, err = d.Revive(t.Context(), store.Revival{
		Ref: ended("b"), URL: "https://b.example/", Header: map[string][]string{"Authorization": {"Bearer other"}},
	})
	require.NoError(t, err)
	require.Equal(t, "https://b.example/", got.URL)
	require.Len(t, got.Header, 1)
	_, sealed := job.Sealed(got.Header["Authorization"])
	require.True(t, sealed)
	got, err = d.Revive(t.Context(),
		store.Revival{Ref: ended("c"), URL: "https://b.example/", Header: map[string][]string{}})
	require.NoError(t, err)
	require.Empty(t, got.Header)
}
