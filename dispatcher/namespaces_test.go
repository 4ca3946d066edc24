package dispatcher_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// inUse deletes the namespace shop, and requires that it is in use.
func (r *fixture) inUse(t *testing.T, purge bool, by string) {
	t.Helper()
	_, err := r.DeleteNamespace(t.Context(), store.NamespaceDeletion{Name: "shop", Purge: purge})
	e, ok := errors.AsType[*job.NamespaceInUseError](err)
	require.True(t, ok, "%v", err)
	require.Contains(t, e.By, by)
	require.Equal(t, purge, e.Purged)
	_, err = r.Namespace(t.Context(), "shop")
	require.NoError(t, err)
}

// withShop runs a dispatcher with the namespace shop.
func withShop(t *testing.T, s store.Store) *fixture {
	t.Helper()
	d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
	_, err := d.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: job.Quota{Pending: 10}}, 0)
	require.NoError(t, err)
	return d
}

func TestDeleteNamespace_RefusesOneInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := start(t, dispatcher.Options{Store: model(), RegisterOnly: true})
		for _, name := range []string{"shop", "default"} {
			_, err := d.DeleteNamespace(t.Context(), store.NamespaceDeletion{Name: name, Purge: true})
			require.ErrorIs(t, err, store.ErrNotFound)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d := withShop(t, model())
		_, err := d.ChangeTopic(t.Context(), "shop", "orders", store.ChangeOptions{},
			func(p *policy.Topic) error { p.Workers = 3; return nil })
		require.NoError(t, err)
		d.inUse(t, false, "orders")
		n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", "a", 1)))
		require.Zero(t, n)
		d.inUse(t, false, "1 unfinished jobs")
		_, err = d.Cancel(t.Context(), job.Ref{Namespace: "shop", ID: "a0"}, store.Cancellation{})
		require.NoError(t, err)
		d.inUse(t, false, "jobs in the state cancelled, such as a0")
		created, _, err := d.CreateToken(t.Context(),
			access.Token{Name: "a", Role: access.Read, Namespace: "shop"}, false)
		require.NoError(t, err)
		d.inUse(t, true, created.ID)
		require.NoError(t, d.RevokeToken(t.Context(), "", created.ID))
		_, err = d.DeleteNamespace(t.Context(), store.NamespaceDeletion{Name: "shop", IfRevision: 99, Purge: true})
		_, conflict := errors.AsType[*store.RevisionError](err)
		require.True(t, conflict)
		_, err = d.Get(t.Context(), job.Ref{Namespace: "shop", ID: "a0"})
		require.NoError(t, err, "nothing was purged")
	})
}

func TestDeleteNamespace_PurgeLeavesNothingToASuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := withShop(t, sharded(2))
		for _, namespace := range []string{"shop", "default"} {
			for i, results := range [][]store.RoutedResult{
				d.Register(t.Context(), jobsIn(namespace, "waiting", 5)),
				d.Register(t.Context(), jobsIn(namespace, "ended", 4)),
			} {
				n, _ := refused(t, results)
				require.Zero(t, n, i)
			}
			for _, id := range []string{"ended0", "ended1"} {
				_, err := d.Cancel(t.Context(), job.Ref{Namespace: namespace, ID: id}, store.Cancellation{})
				require.NoError(t, err)
			}
			_, err := d.ChangeLane(t.Context(), job.Queue{Namespace: namespace, Topic: "orders", Lane: "a"},
				store.ChangeOptions{}, func(l *policy.Lane) error { l.URL = "http://a.example"; return nil })
			require.NoError(t, err)
		}
		_, err := d.StartWork(t.Context(), "shop", store.WorkOrder{
			Action: store.WorkPurge,
			Filter: store.Filter{Namespace: "shop", Topic: "orders", States: []job.State{job.Dead}},
		})
		require.NoError(t, err)
		done, err := d.DeleteNamespace(t.Context(), store.NamespaceDeletion{Name: "shop", Purge: true})
		require.NoError(t, err)
		require.Positive(t, done.Purged)
		_, err = d.Namespace(t.Context(), "shop")
		require.ErrorIs(t, err, store.ErrNotFound)

		_, err = d.PutNamespace(t.Context(), job.Namespace{Name: "shop"}, 0)
		require.NoError(t, err)
		page, err := d.List(t.Context(), store.Filter{Namespace: "shop", Limit: 10})
		require.NoError(t, err)
		require.Empty(t, page.Jobs, "bulk work, too")
		lane, err := d.Lane(t.Context(), job.Queue{Namespace: "shop", Topic: "orders", Lane: "a"})
		require.True(t, err != nil || lane.Revision == 0, "%v %v", err, lane)
		_, err = d.DeleteNamespace(t.Context(), store.NamespaceDeletion{Name: "shop"})
		require.NoError(t, err)

		page, err = d.List(t.Context(), store.Filter{Namespace: "default", Limit: 10})
		require.NoError(t, err)
		require.Len(t, page.Jobs, 9, "of another namespace")
		lane, err = d.Lane(t.Context(), job.Queue{Namespace: "default", Topic: "orders", Lane: "a"})
		require.NoError(t, err)
		require.Positive(t, lane.Revision)
	})
}

// lateStore calls late when a namespace is removed.
type lateStore struct {
	store.Store
	late func()
}

func (s *lateStore) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	put, err := s.Store.PutDocument(ctx, token, doc, limits)
	if doc.Key.Kind == "namespace" && len(doc.Value) == 0 {
		s.late()
	}
	return put, err
}

func TestDeleteNamespace_IsTakenBackForALateRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lateStore{Store: model()}
		d := withShop(t, s)
		other := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		s.late = func() {
			n, _ := refused(t, other.Register(t.Context(), jobsIn("shop", "late", 1)))
			require.Zero(t, n)
		}
		ctx, leave := context.WithCancel(t.Context())
		register := s.late
		s.late = func() { register(); leave() }
		_, err := d.DeleteNamespace(ctx, store.NamespaceDeletion{Name: "shop"})
		_, inUse := errors.AsType[*job.NamespaceInUseError](err)
		require.True(t, inUse, "also for a client that has left: %v", err)
		found, err := other.Namespace(t.Context(), "shop")
		require.NoError(t, err)
		require.Equal(t, int64(10), found.Quota.Pending, "as it was")
		time.Sleep(time.Minute)
		_, err = other.Get(t.Context(), job.Ref{Namespace: "shop", ID: "late0"})
		require.NoError(t, err)
	})
}
