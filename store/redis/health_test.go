package redis

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// advanceHealth advances the clock of the health checks.
func advanceHealth(s *Store, d time.Duration) {
	now := s.now
	s.now = func() time.Time { return now().Add(d) }
}

// checkNextCall makes the next call check the servers.
func checkNextCall(s *Store) { advanceHealth(s, 5*time.Second) }

// pingNow pings and checks the servers.
func pingNow(t *testing.T, s *Store) error {
	t.Helper()
	checkNextCall(s)
	return s.Ping(t.Context())
}

func TestHealth_AnEmptiedStoreIsNoticedByEveryProcessAndLaidOutAsItWas(t *testing.T) {
	server := redistest.Start(t)
	var log testkit.Log
	s := open(t, Options{URL: server.URL(), Shards: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	other := open(t, Options{URL: server.URL()})
	insert(t, s, entry("a"))
	for _, p := range []*Store{s, other} {
		require.NoError(t, pingNow(t, p))
	}
	require.NoError(t, client(t, server.Addr()).FlushAll(t.Context()).Err())
	for _, p := range []*Store{s, other} {
		err := pingNow(t, p)
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, "emptied")
	}
	require.Contains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), "emptied")

	_, err := Open(t.Context(), Options{URL: server.URL(), Shards: 4, Logger: quiet})
	require.ErrorContains(t, err, "the data have 3 shards, not 4")
	insert(t, s, entry("b")) // new jobs are taken
	require.Error(t, pingNow(t, s), "for a while")
	result, err := s.Shards()[0].Repair(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, result.Repairs[store.RepairEmptied], "it is counted once")
	advanceHealth(s, time.Minute)
	require.NoError(t, pingNow(t, s))
}

func TestHealth_DataThatAreLaidOutOtherwiseTakeNoJobs(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, Options{URL: server.URL(), Shards: 2})
	require.NoError(t, pingNow(t, s))
	require.NoError(t, client(t, server.Addr()).FlushAll(t.Context()).Err())
	open(t, Options{URL: server.URL(), Shards: 4})
	require.ErrorContains(t, pingNow(t, s), "restart this process")
	_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("a")})
	require.ErrorIs(t, err, store.ErrUnavailable)
}

func TestHealth_AServerThatMayEvictTakesNoJobs(t *testing.T) {
	server := redistest.Start(t)
	var log testkit.Log
	s := open(t, Options{URL: server.URL(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	admin := client(t, server.Addr())
	require.NoError(t, pingNow(t, s))
	require.NoError(t, admin.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	for range 2 {
		err := pingNow(t, s)
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, "allkeys-lru")
	}
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), log.String())
	_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("a")})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NoError(t, admin.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())
	require.NoError(t, pingNow(t, s))
	insert(t, s, entry("a"))
}

// In a failover by name both servers take writes, and connections to the former one stay open.
func TestHealth_AllProcessesFollowAnAddressToAnotherServer(t *testing.T) {
	t.Parallel()
	first, second := redistest.Start(t), redistest.Start(t)
	proxy := redistest.StartProxy(t, first.Addr())
	var log testkit.Log
	s := open(t, Options{URL: "redis://" + proxy.Addr(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	insert(t, s, entry("before"))
	require.NoError(t, pingNow(t, s))
	proxy.Lead(second.Addr())
	require.ErrorContains(t, pingNow(t, s), "emptied", "the second has other data")
	insert(t, s, entry("after"))
	_, err := open(t, Options{URL: "redis://" + proxy.Addr()}).Shards()[0].Get(t.Context(), ref("after"))
	require.NoError(t, err, "for a process that has not known the first")

	proxy.Lead(first.Addr(), second.Addr())
	for range 2 {
		err := pingNow(t, s)
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, "two redis servers answer at one address")
	}
	_, err = s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("now")})
	require.ErrorContains(t, err, "two redis servers answer at one address")
	require.Equal(t, 1, strings.Count(log.String(), "level=ERROR msg=\"two redis servers"), log.String())
	_, err = s.Shards()[0].Get(t.Context(), ref("after"))
	require.NoError(t, err, "calls keep to one server")
}

// One server of a cluster may be emptied, or restart without its data, while <prefix>:meta is on another server.
func TestHealth_AnEmptiedServerOfAClusterIsNoticed(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3, 0)
	s := open(t, Options{URL: servers.URL()})
	require.NoError(t, pingNow(t, s))
	for shard := range s.Shards() {
		repairAll(t, s, shard) // leaves its mark
	}
	require.NoError(t, pingNow(t, s))
	meta := servers.Master(servers.Slot(layout.MetaKey("rb")))
	for _, server := range servers.Masters() {
		if server != meta {
			require.NoError(t, client(t, server.Addr()).FlushAll(t.Context()).Err())
			break
		}
	}
	require.ErrorContains(t, pingNow(t, s), "emptied")
}

func TestHealth_ServersAreAskedEveryFewSecondsOnly(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, Options{URL: server.URL(), Shards: 16})
	calls := func() string {
		info, err := client(t, server.Addr()).InfoMap(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		return info["Commandstats"]["cmdstat_config|get"]
	}
	require.NoError(t, pingNow(t, s))
	before := calls()
	for shard := range s.Shards() {
		_, err := s.Shards()[shard].Repair(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Ping(t.Context()))
	}
	require.Equal(t, before, calls())
}
