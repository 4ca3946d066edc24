package pool_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
)

// sealedFor is a header's secret as it is stored, in the form that book opens.
func sealedFor(origin string, values ...string) []string {
	return job.SealedValues(job.HeaderSecret{Origin: origin, Values: values}.Text())
}

func TestAttempt_SendsSealedHeadersOnlyToTheirOrigins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(0)
		const home, away = "https://home.example:443", "https://away.example:443"
		policies := &fakeSettings{topics: map[string]policy.Topic{"orders": {
			URL: "https://home.example/hooks", Headers: map[string][]string{
				"X-Topic-Key": sealedFor(home, "topic"), "X-Any-Key": sealedFor("", "any"),
				"X-Over-Key": sealedFor(home, "topic"), "X-Plain": {"1"},
			},
		}}}
		putLane(t, s, "orders", "own", policy.Lane{Headers: map[string][]string{
			"X-Lane-Key": sealedFor(home, "one", "two"), "X-Over-Key": sealedFor(away, "lane"),
		}})
		own := map[string][]string{"X-Job-Key": sealedFor(home, "job")}
		insert(
			t, s,
			job.Spec{ID: "home", Queue: queueOf("orders", "own"), Header: own},
			job.Spec{ID: "elsewhere", Queue: queueOf("orders", "own"), URL: "https://away.example/"},
			job.Spec{ID: "scheme", Queue: queueOf("orders", "own"), URL: "http://home.example/"},
			job.Spec{ID: "port", Queue: queueOf("orders", "own"), URL: "https://HOME.example:443/x?y"},
			job.Spec{ID: "wrong-origin", Queue: queueOf("orders", "own"), URL: "https://away.example/", Header: own},
			job.Spec{
				ID: "none", Queue: queueOf("bills", "a"), URL: "https://away.example/",
				Header: map[string][]string{"X-A": {"1"}},
			},
		)
		run(t, s, g, func(o *pool.Options) { o.Policies = policies })
		time.Sleep(time.Second)
		sent := map[string]map[string][]string{}
		for _, r := range g.requests() {
			sent[r.Ref.ID] = r.Header
		}
		require.Equal(t, map[string]map[string][]string{
			"home": {
				"X-Topic-Key": {"topic"}, "X-Any-Key": {"any"}, "X-Plain": {"1"},
				"X-Lane-Key": {"one", "two"}, "X-Job-Key": {"job"},
			},
			"elsewhere": {"X-Any-Key": {"any"}, "X-Plain": {"1"}, "X-Over-Key": {"lane"}},
			"scheme":    {"X-Any-Key": {"any"}, "X-Plain": {"1"}},
			"port": {
				"X-Topic-Key": {"topic"}, "X-Any-Key": {"any"}, "X-Plain": {"1"},
				"X-Lane-Key": {"one", "two"},
			},
			"none": {"X-A": {"1"}},
		}, sent)

		got := get(t, s, "wrong-origin")
		require.Equal(t, job.Dead, got.State)
		require.Equal(t, policy.ReasonInvalid, got.Reason)
		require.Zero(t, got.Attempts)
		require.Contains(t, got.History[0].Error, "the secret header X-Job-Key was set for another origin")
		require.NotContains(t, got.History[0].Error, "https")
		require.Equal(t, sealedFor(home, "job"), own["X-Job-Key"], "stored headers are not modified")
	})
}

func TestAttempt_WaitsWhileAHeaderCannotBeOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := model(), newGauge(0)
		policies := &fakeSettings{fails: map[string]error{"X-Key": errors.New("no such key")}}
		carry(t, s)
		insert(
			t, s,
			job.Spec{
				ID: "sealed", Queue: queueOf("orders", "a"), URL: "https://x.example/",
				Header: map[string][]string{"X-Key": sealedFor("", "k")},
			},
			job.Spec{
				ID: "callback", Queue: queueOf("_callbacks", "a"), Kind: job.KindCallback,
				URL: "https://x.example/", Header: map[string][]string{"X-Key": sealedFor("", "k")},
			},
			job.Spec{ID: "open", Queue: queueOf("_callbacks", "a"), Kind: job.KindCallback, URL: "https://x.example/"},
			job.Spec{ID: "other", Queue: queueOf("orders", "b"), URL: "https://x.example/"},
		)
		run(t, s, g, func(o *pool.Options) { o.Policies = policies })
		time.Sleep(time.Minute)
		require.Equal(t, 1, g.count("orders"))
		require.Equal(t, 1, g.count("_callbacks"), "those of others do not wait for it")
		for _, id := range []string{"sealed", "callback"} {
			j := get(t, s, id)
			require.Zero(t, j.Attempts)
			require.Empty(t, j.History)
			require.False(t, j.State.Ended())
		}
		policies.set(func() { delete(policies.fails, "X-Key") })
		time.Sleep(15 * time.Second)
		require.Equal(t, 2, g.count("orders"))
		require.Equal(t, 2, g.count("_callbacks"))
	})
}
