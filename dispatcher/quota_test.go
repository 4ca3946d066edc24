package dispatcher_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// jobsIn returns n registrations in a namespace, with ids.
func jobsIn(namespace, prefix string, n int) []job.New {
	jobs := make([]job.New, n)
	for i := range jobs {
		jobs[i] = job.New{Spec: job.Spec{
			ID: fmt.Sprint(prefix, i), Queue: job.Queue{Namespace: namespace}, URL: "https://a.example/",
		}, Delay: time.Hour}
	}
	return jobs
}

func perMinute(starts int) policy.Rate { return policy.Rate{Starts: starts, Per: time.Minute} }

// refused counts the results that a quota refused, and returns one of their errors.
func refused(t *testing.T, results []store.RoutedResult) (n int, err *job.QuotaError) {
	t.Helper()
	for _, r := range results {
		if e, ok := errors.AsType[*job.QuotaError](r.Err); ok {
			n, err = n+1, e
		} else {
			require.NoError(t, r.Err)
		}
	}
	return n, err
}

func TestQuota_BoundsUnfinishedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		other := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		_, err := d.PutNamespace(t.Context(), job.Namespace{Name: "shop", Quota: job.Quota{Pending: 10}}, 0)
		require.NoError(t, err)
		n, quota := refused(t, d.Register(t.Context(), jobsIn("shop", "a", 12)))
		require.Equal(t, 2, n)
		require.Equal(t, "pending", quota.Quota)
		require.Positive(t, quota.RetryAfter)
		n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "b", 1)))
		require.Equal(t, 1, n)
		n, _ = refused(t, other.Register(t.Context(), jobsIn("shop", "c", 1)))
		require.Equal(t, 1, n, "another process counts them, too")
		n, _ = refused(t, d.Register(t.Context(), jobsIn("default", "d", 20)))
		require.Zero(t, n, "another namespace has its own quota")
		totals, err := d.Totals(t.Context(), "shop")
		require.NoError(t, err)
		require.EqualValues(t, 10, totals.Registered, "nothing was stored beyond the quota")

		_, err = d.Cancel(t.Context(), job.Ref{Namespace: "shop", ID: "a0"}, store.Cancellation{})
		require.NoError(t, err)
		time.Sleep(time.Second + time.Millisecond)
		n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "e", 2)))
		require.Equal(t, 1, n)

		_, err = d.PutNamespace(t.Context(), job.Namespace{Name: "shop"}, 0)
		require.NoError(t, err)
		n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "f", 20)))
		require.Zero(t, n)
	})
}

func TestQuota_BoundsTheRateOverAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		d := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		other := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		_, err := d.PutNamespace(t.Context(),
			job.Namespace{Name: "shop", Quota: job.Quota{Rate: policy.Rate{Starts: 5, Per: time.Second}}}, 0)
		require.NoError(t, err)
		n, _ := refused(t, d.Register(t.Context(), jobsIn("shop", "a", 3)))
		require.Zero(t, n)
		n, quota := refused(t, other.Register(t.Context(), jobsIn("shop", "b", 3)))
		require.Equal(t, 1, n)
		require.Equal(t, "rate", quota.Quota)
		require.Equal(t, "5/s", quota.Limit)
		require.Positive(t, quota.RetryAfter)
		require.LessOrEqual(t, quota.RetryAfter, 1100*time.Millisecond)
		time.Sleep(quota.RetryAfter)
		n, _ = refused(t, d.Register(t.Context(), jobsIn("shop", "c", 5)))
		require.Zero(t, n)
		topics, err := d.Topics(t.Context(), "shop", "", 10)
		require.NoError(t, err)
		require.Len(t, topics, 1, "the count of registrations is no topic")
	})
}
