package e2e

import (
	"net/http"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
)

// admin returns a Redis client for the test.
func admin(t *testing.T, server *redistest.Server) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestRedis_CutConnectionsLoseAndRepeatNothing(t *testing.T) {
	faults := []struct {
		name string
		args []any
	}{
		{"scripts are forgotten", []any{"SCRIPT", "FLUSH"}},
		{"connections are cut", []any{"CLIENT", "KILL", "TYPE", "normal"}},
	}
	t.Parallel()
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			onShards(t, func(t *testing.T, shards string) {
				const between = 40
				times := testkit.Of(10, 30)
				server, r := redistest.Start(t), newReceiver(t)
				c := admin(t, server)
				p := start(t, server.URL(), shards)
				l := newLoad(t, p, 8, busyJobs(r))
				for n := range times {
					l.reaches(t, (n+1)*between)
					require.NoError(t, c.Do(t.Context(), fault.args...).Err())
				}
				takes, delivers := carriesOn(t, p, l, r)
				sum := l.settles(t, p)
				// Every call bears a token and is sent again under it, so that what was done is not done twice.
				require.Empty(t, r.repeated(t, l.accepted))
				t.Logf("%s; %d registrations refused, the longest wait for an answer %s; after the last fault it "+
					"takes after %s and delivers after %s",
					sum, l.refused, l.longest, takes, delivers)
			})
		})
	}
}

func TestRedis_FullRejectsRegistrationsAndDelivers(t *testing.T) {
	onShards(t, func(t *testing.T, shards string) {
		server, r := redistest.Start(t), newReceiver(t)
		c := admin(t, server)
		p := start(t, server.URL(), shards)
		later := register(t, p, obj{"url": r.URL + "/ok", "delay": "1s"})
		l := newLoad(t, p, 8, busyJobs(r))
		for round := range testkit.Of(2, 3) {
			l.reaches(t, (round+1)*200)
			require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1mb").Err()) // less than it needs to begin with
			var why string
			eventually(t, func() bool { why = p.unready(); return why != "" })
			require.Contains(t, why, "its memory is full")
			refused := l.refusals()
			eventually(t, func() bool { return l.refusals() >= refused+50 })
			if round == 0 {
				// All accepted jobs are delivered, the clients', too.
				r.arrives(t, later.ID, 1)
				ended(t, p)
			}
			require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
			takes, delivers := carriesOn(t, p, l, r)
			t.Logf("not ready: %q; with memory again it takes after %s and delivers after %s", why, takes, delivers)
		}
		sum := l.settles(t, p)
		require.Empty(t, r.repeated(t, l.accepted))
		t.Logf("%s; %d registrations refused, the longest wait for an answer %s", sum, l.refused, l.longest)
	})
}

// With full memory reads succeed, and writes are rejected with a retryable error.
func TestRedis_FullServesReads(t *testing.T) {
	t.Parallel()
	server, r := redistest.Start(t), newReceiver(t)
	p := start(t, server.URL())
	job := register(t, p, obj{"url": r.URL + "/ok", "delay": "1h"})
	require.NoError(t, admin(t, server).ConfigSet(t.Context(), "maxmemory", "1mb").Err())
	require.Equal(t, "scheduled", get(t, p, job.ID).State)
	count(t, p)
	call[obj](t, p, http.MethodPatch, "/v1/jobs/"+job.ID, obj{"delay": "2h"}, http.StatusServiceUnavailable)
	call[obj](t, p, http.MethodPut, "/v1/topics/t", obj{}, http.StatusServiceUnavailable)
	call[view](t, p, http.MethodDelete, "/v1/jobs/"+job.ID, nil, http.StatusOK)
}
