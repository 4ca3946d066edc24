package dispatcher_test

import (
	"context"
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

// shared is a store that several dispatchers of a test use: it ignores Close.
type shared struct{ store.Store }

func (shared) Close() error { return nil }

// noWorkerStore fails the test on calls of a carrier or a pool.
type noWorkerStore struct {
	store.Store
	t *testing.T
}

func (i noWorkerStore) Shards() []store.Shard {
	return storetest.WrapShards(i.Store, func(_ int, next store.Shard) store.Shard { return noWorkerShard{next, i} })
}

type noWorkerShard struct {
	store.Shard
	noWorkerStore
}

func (s noWorkerShard) Lead(context.Context) (store.Leadership, error) {
	s.t.Error("it takes a carrier's lock")
	return nil, store.ErrNotLeader
}

func (s noWorkerShard) Wait(context.Context, store.WaitOptions) ([]job.Queue, error) {
	s.t.Error("it waits for wake-ups")
	return nil, store.ErrUnavailable
}

func TestRegisterOnly_LeavesDeliveriesToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		front := start(t, dispatcher.Options{Store: noWorkerStore{s, t}, RegisterOnly: true})
		synctest.Wait()
		require.NoError(t, front.Ready(t.Context()))
		now := front.register(t, job.New{})
		soon := front.register(t, job.New{Delay: time.Second})
		time.Sleep(time.Minute)
		totals, err := front.Totals(t.Context(), job.DefaultNamespace)
		require.NoError(t, err)
		require.EqualValues(t, 2, totals.Registered)
		require.Zero(t, totals.Delivered)

		rec := &receiver{answer: status(200)}
		start(t, dispatcher.Options{Store: s, Deliverer: rec})
		time.Sleep(5 * time.Second)
		require.Len(t, rec.calls(), 2)
		require.Equal(t, job.Delivered, front.get(t, now.Ref()).State)
		require.Equal(t, job.Delivered, front.get(t, soon.Ref()).State)

		require.NoError(t, front.stop())
		require.ErrorIs(t, front.Ready(t.Context()), dispatcher.ErrStopping)
		front.register(t, job.New{}) // a draining process still accepts jobs
	})
}

func TestRegisterOnly_SeesPoliciesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		front := start(t, dispatcher.Options{Store: noWorkerStore{s, t}, RegisterOnly: true})
		other := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}})
		put := func(url string) {
			_, err := other.PutTopic(t.Context(), store.Topic{
				Namespace: job.DefaultNamespace, Name: "hooks", Policy: policy.Topic{URL: url},
			})
			require.NoError(t, err)
		}
		lane := func() string {
			got := front.Register(t.Context(), []job.New{{Spec: job.Spec{Queue: job.Queue{Topic: "hooks"}}}})[0]
			require.NoError(t, got.Err)
			return got.Job.Lane
		}
		put("https://old.example/")
		require.Equal(t, "old.example:443", lane())
		put("https://new.example/")
		time.Sleep(time.Second + time.Millisecond)
		require.Equal(t, "new.example:443", lane())
	})
}
