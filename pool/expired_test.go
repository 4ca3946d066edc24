package pool_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func TestExpired_KeepsJobsThatALongerMaxAgeApplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(0)
		g.result = policy.Result{Class: policy.ClassHTTP, Status: 500}
		var e store.NewJob
		e.ID, e.Queue, e.URL, e.MaxAge = "retried", queueOf("orders", "a"), "https://x.example/", time.Minute
		_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{e})
		require.NoError(t, err)
		longer := policy.Topic{Ladder: policy.Ladder{time.Hour}, Jitter: new(0.0), MaxAge: 24 * time.Hour}
		run(t, s, g, withPolicy(longer))
		carry(t, s)
		time.Sleep(2 * time.Minute)
		require.Equal(t, 1, g.count(""))
		due := get(t, s, "retried").DueAt
		require.Greater(t, time.Until(due), 50*time.Minute)
		time.Sleep(5 * time.Second)
		carry(t, s)
		time.Sleep(time.Minute)
		require.Equal(t, 1, g.count(""), "no attempt before its rung")
		require.Equal(t, due, get(t, s, "retried").DueAt)
	})
}

func TestExpired_JobThatCannotBeSettledStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		var entries []store.NewJob
		for i := range 5 {
			var e store.NewJob
			e.ID, e.Queue, e.URL = fmt.Sprint(i), queueOf("orders", "a"), "https://x.example/"
			e.Delay, e.ExpiresIn = time.Hour, time.Second
			entries = append(entries, e)
		}
		_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), entries)
		require.NoError(t, err)
		run(t, newUnsettleableStore(s, "2"), newGauge(0), nil)
		time.Sleep(6 * time.Second)
		for _, e := range entries {
			require.Equal(t, e.ID != "2", get(t, s, e.ID).State == job.Dead, "job %s", e.ID)
		}
	})
}

func TestExpired_CostsFewCallsWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		s := storetest.Faulty(model(), func(method string) storetest.Fault {
			if method == "ClaimExpired" {
				calls.Add(1)
			}
			return storetest.None
		})
		run(t, s, newGauge(0), nil)
		time.Sleep(time.Minute)
		require.Less(t, calls.Load(), int64(15))
	})
}
