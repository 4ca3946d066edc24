package dispatcher_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// slowTopicsStore delays or blocks reads of policies and of other settings.
type slowTopicsStore struct {
	store.Store
	takes atomic.Int64 // nanoseconds; below 0: until the context ends
	reads atomic.Int32 // of policies
}

func (s *slowTopicsStore) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	if kind == store.KindTopic {
		s.reads.Add(1)
	}
	takes := s.takes.Load()
	if takes < 0 {
		<-ctx.Done()
		return store.Changes{}, &store.UnavailableError{Reason: "silent", Err: context.Cause(ctx)}
	}
	time.Sleep(time.Duration(takes))
	return s.Store.ListChanges(ctx, kind, since)
}

const silent = -1

// hooks is a job that takes its URL from its topic.
func hooks() job.New { return job.New{Spec: job.Spec{Queue: job.Queue{Topic: "hooks"}}} }

// withHooks runs a dispatcher that only registers on a reluctant store, which has the topic hooks, and another that
// PUTs it.
func withHooks(t *testing.T) (front *fixture, s *slowTopicsStore, put func(url string)) {
	t.Helper()
	all := model()
	s = &slowTopicsStore{Store: all}
	front = start(t, dispatcher.Options{Store: s, RegisterOnly: true})
	other := start(t, dispatcher.Options{Store: all, Deliverer: &receiver{answer: status(200)}})
	put = func(url string) {
		_, err := other.PutTopic(t.Context(), store.Topic{
			Namespace: job.DefaultNamespace, Name: "hooks", Policy: policy.Topic{URL: url},
		})
		require.NoError(t, err)
	}
	put("https://old.example/")
	require.NoError(t, front.Register(t.Context(), []job.New{hooks()})[0].Err)
	return front, s, put
}

// registerConcurrently makes n registrations at once and returns their results and durations.
func registerConcurrently(t *testing.T, d *fixture, n int, j job.New) (got []store.RoutedResult, took []time.Duration) {
	t.Helper()
	got, took = make([]store.RoutedResult, n), make([]time.Duration, n)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			got[i] = d.Register(t.Context(), []job.New{j})[0]
			took[i] = time.Since(began)
		})
	}
	wg.Wait()
	return got, took
}

func TestPolicies_ReloadDoesNotBlockRegistrations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front, s, _ := withHooks(t)
		s.takes.Store(int64(500 * time.Millisecond))
		time.Sleep(time.Second + time.Millisecond)
		got, took := registerConcurrently(t, front, 20, hooks())
		waited := 0
		for i := range got {
			require.NoError(t, got[i].Err)
			if took[i] > 0 {
				waited++
			}
		}
		require.Equal(t, 1, waited, "one reads for all")
	})
}

func TestPolicies_HangingStoreDelaysOneRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front, s, _ := withHooks(t)
		s.takes.Store(silent)
		time.Sleep(time.Minute)
		got, took := registerConcurrently(t, front, 20, hooks())
		long := 0
		for i := range got {
			require.NoError(t, got[i].Err, "those at hand still hold")
			if took[i] > time.Second {
				long++
			}
		}
		require.LessOrEqual(t, long, 1)

		before := s.reads.Load()
		_, took = registerConcurrently(t, front, 20, hooks())
		require.Equal(t, make([]time.Duration, 20), took, "it just failed")
		require.Equal(t, before, s.reads.Load())

		time.Sleep(time.Second + time.Millisecond)
		_, took = registerConcurrently(t, front, 20, hooks())
		long = 0
		for i := range took {
			if took[i] > 0 {
				long++
			}
		}
		require.Equal(t, 1, long, "one tries again")
		require.Equal(t, before+1, s.reads.Load())
	})
}

func TestPolicies_AreReloadedAfterAnIdleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front, s, put := withHooks(t)
		put("https://new.example/")
		time.Sleep(time.Hour)
		s.takes.Store(int64(100 * time.Millisecond))
		got, _ := registerConcurrently(t, front, 20, hooks())
		for i := range got {
			require.NoError(t, got[i].Err)
			require.Equal(t, "new.example:443", got[i].Job.Lane)
		}
	})
}

func TestPolicies_ConcurrentLookupsOfAHangingStoreShareOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front, s, _ := withHooks(t)
		s.takes.Store(silent)
		unknown := hooks()
		unknown.Topic = "unknown"
		got, took := registerConcurrently(t, front, 20, unknown)
		for i := range got {
			require.ErrorIs(t, got[i].Err, store.ErrUnavailable)
			require.LessOrEqual(t, took[i], 5*time.Second)
		}
	})
}

func TestPolicies_LookupEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front, s, _ := withHooks(t)
		s.takes.Store(silent)
		unknown := hooks()
		unknown.Topic = "unknown"
		var first sync.WaitGroup
		first.Go(func() { front.Register(t.Context(), []job.New{unknown}) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		got := front.Register(ctx, []job.New{unknown})[0]
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, got.Err, store.ErrUnavailable)
		require.ErrorIs(t, got.Err, context.DeadlineExceeded)
		first.Wait()
	})
}

func TestPolicies_CancelledCallIsNotAStoreError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front, s, _ := withHooks(t)
		unknown := hooks()
		unknown.Topic = "unknown"
		s.takes.Store(silent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var leaves sync.WaitGroup
		leaves.Go(func() { front.Register(ctx, []job.New{unknown}) })
		synctest.Wait()
		s.takes.Store(0)
		got := front.Register(t.Context(), []job.New{unknown})[0]
		require.NotErrorIs(t, got.Err, store.ErrUnavailable)
		var invalid *job.InvalidError
		require.ErrorAs(t, got.Err, &invalid, "the topic has no URL")
		leaves.Wait()
	})
}

func TestPolicies_BatchAsksOnceWithoutAReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front, s, _ := withHooks(t)
		s.takes.Store(silent)
		jobs := []job.New{hooks()}
		for i := range 100 {
			n := hooks()
			n.Topic = fmt.Sprint("unknown-", i)
			jobs = append(jobs, n)
		}
		before, began := s.reads.Load(), time.Now()
		got := front.Register(t.Context(), append(jobs, hooks()))
		require.Equal(t, int32(1), s.reads.Load()-before)
		require.LessOrEqual(t, time.Since(began), 5*time.Second)
		require.NoError(t, got[0].Err)
		require.ErrorIs(t, got[1].Err, store.ErrUnavailable)
		require.ErrorIs(t, got[100].Err, store.ErrUnavailable)
		require.NoError(t, got[101].Err, "one that is refused spoils no other")
	})
}
