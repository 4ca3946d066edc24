package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
)

// onShards runs a test on stores with 16 shards and, with make test-all, with one, in parallel.
func onShards(t *testing.T, test func(t *testing.T, flag string)) {
	t.Helper()
	t.Parallel()
	for _, shards := range testkit.Of([]string{"16"}, []string{"1", "16"}) {
		t.Run(shards+" shards", func(t *testing.T) {
			t.Parallel()
			test(t, "--shards="+shards)
		})
	}
}

// durableRedis starts a Redis that acknowledges after fsync.
func durableRedis(t *testing.T) *redistest.Server {
	t.Helper()
	return redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
}

// busyJobs returns jobs of several lanes: most are due now, every fourth soon, every tenth fails first.
func busyJobs(r *receiver) func(n int) obj {
	return func(n int) obj {
		j := obj{
			"topic": "busy", "lane": "lane-" + string(rune('a'+n%16)), "url": r.URL + "/ok",
			"ladder": []string{"100ms"}, "retries": 20,
		}
		if n%4 == 0 {
			j["delay"] = "300ms"
		}
		if n%10 == 0 {
			j["url"] = r.URL + "/fail/1"
		}
		return j
	}
}

// carriesOn waits until a process registers and delivers again, and returns the time that each took.
func carriesOn(t *testing.T, p *process, l *load, r *receiver) (takes, delivers time.Duration) {
	t.Helper()
	began := time.Now()
	l.grows(t)
	takes = time.Since(began)
	r.grows(t)
	delivers = time.Since(began)
	eventually(t, p.ready, "the process must be ready again")
	return takes, delivers
}

func TestRedis_RestartUnderLoadLosesAndRepeatsNothing(t *testing.T) {
	onShards(t, func(t *testing.T, shards string) {
		const perLife = 200
		kills := testkit.Of(2, 4)
		server, r := durableRedis(t), newReceiver(t)
		p := start(t, server.URL(), shards)
		l := newLoad(t, p, 8, busyJobs(r))
		for life := range kills {
			l.reaches(t, (life+1)*perLife)
			server.Kill()
			var why string
			eventually(t, func() bool { why = p.unready(); return why != "" },
				"a process without its store is not ready")
			require.Contains(t, why, "redis")
			refused := l.refusals()
			eventually(t, func() bool { return l.refusals() >= refused+50 },
				"registrations are refused at once")
			server.Restart()
			takes, delivers := carriesOn(t, p, l, r)
			t.Logf("not ready: %q; %d registrations refused; after the restart it takes after %s and delivers after %s",
				why, l.refusals()-refused, takes, delivers)
		}
		l.reaches(t, (kills+1)*perLife)
		sum := l.settles(t, p)
		// What could not be settled was settled later, under the same token, and Redis forgot nothing of what it had
		// answered: so there is no reason for a second request.
		require.Empty(t, r.repeated(t, l.accepted))
		require.Equal(t, sum, count(t, start(t, server.URL())), "another process counts the same")
		t.Logf("%s; the longest wait for an answer was %s", sum, l.longest)
	})
}
