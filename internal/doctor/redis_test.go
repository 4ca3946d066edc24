package doctor

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// requireRedisFinding fails the test unless there is a finding of a check with a level and words.
func requireRedisFinding(t *testing.T, found []Finding, check Name, level Level, seen string) {
	t.Helper()
	require.True(t, slices.ContainsFunc(found, func(f Finding) bool {
		return f.Check == check && f.Level == level && strings.Contains(f.Seen, seen) &&
			(f.Remedy == "") == (level == OK)
	}), "%s %s %q in %v", check, level, seen, found)
}

// healthy is a server with which nothing is wrong.
func healthy() server {
	return server{
		addr:      "10.0.0.1:6379",
		trips:     []time.Duration{100 * time.Microsecond, 200 * time.Microsecond, time.Millisecond},
		precision: 50 * time.Microsecond, info: map[string]string{
			"redis_version": "7.2.4", "redis_mode": "standalone", "used_memory": "1000000", "maxmemory": "100000000",
			"total_system_memory": "8000000000", "rdb_last_bgsave_status": "ok", "aof_last_write_status": "ok",
			"role": "master", "connected_slaves": "0", "connected_clients": "5",
			"maxclients": "10000", "evicted_keys": "0", "expired_keys": "7", "rejected_connections": "0",
		},
		settings: map[string]string{
			"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec", "save": "",
			"timeout": "0", "tcp-keepalive": "300", "min-replicas-to-write": "0",
		},
		rights: &rights{},
	}
}

// with changes INFO fields and settings, given as name=value.
func with(pairs ...string) func(*facts, *server) {
	return func(_ *facts, s *server) {
		for _, pair := range pairs {
			name, value, _ := strings.Cut(pair, "=")
			if _, is := s.settings[name]; is {
				s.settings[name] = value
			} else {
				s.info[name] = value
			}
		}
	}
}

func TestJudge_FindsWhatIsWrongWithAServer(t *testing.T) {
	wait := func(w connect.Wait, pairs ...string) func(*facts, *server) {
		return func(f *facts, s *server) { f.Wait = w; with(pairs...)(f, s) }
	}
	fsync := connect.Wait{Fsync: true, Timeout: time.Second}
	replica := func(state, lag string) string {
		return "slave0=ip=10.0.0.2,port=6379,state=" + state + ",offset=1,lag=" + lag
	}
	for _, c := range []struct {
		check  Name
		level  Level
		seen   string
		change func(*facts, *server)
	}{
		{RedisReach, OK, "takes 200µs (the slowest of 3: 1ms)", with()},
		{RedisReach, Warn, "takes 30ms", func(_ *facts, s *server) {
			s.trips = []time.Duration{30 * time.Millisecond}
		}},
		{RedisReach, Unknown, "does not tell the time", func(_ *facts, s *server) { s.trips = nil }},

		{RedisVersion, OK, "Redis 7.2.4, standalone", with()},
		{RedisVersion, OK, "Redis 6.2.0", with("redis_version=6.2.0")},
		{RedisVersion, Fault, "Redis 6.0.16 lacks commands", with("redis_version=6.0.16")},
		{RedisVersion, Fault, "Redis 7.0.15 cannot wait for fsync", wait(fsync, "redis_version=7.0.15")},
		{RedisVersion, OK, "Redis 7.2.4", wait(fsync)},
		{RedisVersion, Fault, "one of a cluster", with("redis_mode=cluster")},
		{
			RedisVersion, OK, "cluster",
			func(f *facts, s *server) { f.cluster = true; s.info["redis_mode"] = "cluster" },
		},
		{RedisVersion, Fault, "one of a sentinel", with("redis_mode=sentinel")},
		{RedisVersion, Unknown, "does not tell its version", with("redis_version=")},

		{RedisClock, OK, "within", with()},
		{RedisClock, Warn, "the clock of Redis is 12s " +
			"behind", func(_ *facts, s *server) { s.ahead = -12 * time.Second }},
		{RedisClock, Fault, "10m0s ahead", func(_ *facts, s *server) { s.ahead = 10 * time.Minute }},
		{RedisClock, Unknown, "does not tell the time", func(_ *facts, s *server) { s.trips = nil }},

		{RedisEviction, OK, "is noeviction", with()},
		{RedisEviction, Fault, "is allkeys-lru", with("maxmemory-policy=allkeys-lru")},
		{RedisEviction, Fault, "is volatile-ttl", with("maxmemory-policy=volatile-ttl")},
		{RedisEviction, Unknown, "does not tell", func(_ *facts, s *server) { s.settings = nil }},

		{RedisMemory, OK, "977 KiB of 95.4 MiB are used", with()},
		{RedisMemory, Warn, "(maxmemory) are used", with("used_memory=81000000")},
		{RedisMemory, Fault, "memory is full", with("used_memory=100000001")},
		{RedisMemory, Warn, "there is no maxmemory; 977 KiB are used", with("maxmemory=0")},
		{RedisMemory, Warn, "(the machine) are used", with("maxmemory=0", "used_memory=7000000000")},
		{RedisMemory, Unknown, "there is no maxmemory", with("maxmemory=0", "total_system_memory=")},
		{RedisMemory, Unknown, "does not tell its memory", func(_ *facts, s *server) { s.info = nil }},

		{RedisPersistence, OK, "up to about two seconds", with()},
		{RedisPersistence, OK, "always: an accepted job survives", with("appendfsync=always")},
		{RedisPersistence, OK, `"synced": true survives`, wait(fsync)},
		{RedisPersistence, Warn, "some 30 seconds", with("appendfsync=no")},
		{RedisPersistence, Warn, "snapshots only (save 3600 1)", with("appendonly=no", "save=3600 1")},
		{RedisPersistence, Warn, "persists nothing", with("appendonly=no")},
		{RedisPersistence, Fault, "appendonly is no: Ringback refuses to " +
			"start", wait(fsync, "appendonly=no")},
		{RedisPersistence, Unknown, "does not tell", func(_ *facts, s *server) { s.settings = nil }},

		{RedisSaving, OK, "succeeded", with()},
		{RedisSaving, Fault, "rdb_last_bgsave_status is err", with("rdb_last_bgsave_status=err")},
		{RedisSaving, Fault, "aof_last_write_status is err", with("aof_last_write_status=err")},
		{RedisSaving, Fault, "is loading", with("loading=1")},
		{RedisSaving, Unknown, "does not tell", func(_ *facts, s *server) { s.info = nil }},

		{RedisReplicas, OK, "no replicas", with()},
		{RedisReplicas, OK, "1 replicas follow", wait(connect.Wait{Replicas: 1}, "connected_slaves=1",
			replica("online", "1"))},
		{RedisReplicas, OK, "1 replicas follow", with("connected_slaves=1", replica("online", "1"),
			"min-replicas-to-write=1")},
		{RedisReplicas, Warn, "no write waits for " +
			"them", with("connected_slaves=1", replica("online", "1"))},
		{RedisReplicas, Warn, "10.0.0.2:6379 is " +
			"wait_bgsave", with("connected_slaves=1", replica("wait_bgsave", "0"))},
		{RedisReplicas, Warn, "is online, 60 s " +
			"late", with("connected_slaves=1", replica("online", "60"))},
		{RedisReplicas, Warn, "0 replicas follow, --redis-wait asks for 1", wait(
			connect.Wait{Replicas: 1},
		)},
		{RedisReplicas, Fault, "min-replicas-to-write is 1: Redis refuses all " +
			"writes", with("min-replicas-to-write=1")},
		{RedisReplicas, Fault, "is a replica", with("role=slave")},
		{RedisReplicas, Unknown, "does not tell", func(_ *facts, s *server) { s.info = nil }},

		{RedisConnections, OK, "5 of 10000 connections are open, a process takes up to 76", with()},
		{RedisConnections, Warn, "9990 of 10000", with("connected_clients=9990")},
		{RedisConnections, Warn, "tcp-keepalive is 0", with("tcp-keepalive=0")},
		{RedisConnections, Warn, "timeout is 3", with("timeout=3")},
		{RedisConnections, Unknown, "does not tell", func(_ *facts, s *server) { s.info = nil }},

		{RedisRights, OK, "has all rights", with()},
		{RedisRights, Fault, "may not call hset, " +
			"zadd", func(_ *facts, s *server) { s.rights = &rights{missing: []string{"hset", "zadd"}} }},
		{RedisRights, Warn, "may not call " +
			"unlink", func(_ *facts, s *server) { s.rights = &rights{optional: []string{"unlink"}} }},
		{RedisRights, Unknown, "from version 7 on", func(_ *facts, s *server) { s.rights = nil }},

		{RedisLosses, OK, "no key was evicted", with()},
		{RedisLosses, Warn, "evicted 3 keys", with("evicted_keys=3")},
		{RedisLosses, Warn, "rejected 2 connections", with("rejected_connections=2")},
		{RedisLosses, Unknown, "does not tell", func(_ *facts, s *server) { s.info = nil }},
	} {
		f, s := &facts{maxConns: 64, shards: 4}, healthy()
		c.change(f, &s)
		f.servers = []server{s}
		requireRedisFinding(t, f.judge(), c.check, c.level, c.seen)
	}
}

func TestJudge_SaysWhichOfSeveralServers(t *testing.T) {
	sick := healthy()
	sick.addr, sick.settings["maxmemory-policy"] = "10.0.0.9:6379", "allkeys-lru"
	f := &facts{servers: []server{healthy(), sick, healthy()}}
	found := f.judge()
	requireRedisFinding(t, found, RedisEviction, Fault, "10.0.0.9:6379: maxmemory-policy is allkeys-lru")
	requireRedisFinding(t, found, RedisSaving, OK, "; and 2 more servers are fine")

	again := healthy()
	again.addr, again.settings["maxmemory-policy"] = "10.0.0.8:6379", "allkeys-lru"
	f = &facts{servers: []server{healthy(), again, sick}}
	requireRedisFinding(t, f.judge(), RedisEviction, Fault,
		"10.0.0.8:6379, 10.0.0.9:6379: maxmemory-policy is allkeys-lru")
}

func TestJudge_OfAServerThatIsDownSaysNothingElse(t *testing.T) {
	down := server{addr: "10.0.0.9:6379", down: true, err: errors.New("connection refused")}
	f := &facts{servers: []server{healthy(), healthy(), down}}
	found := f.judge()
	requireRedisFinding(t, found, RedisReach, Fault, "10.0.0.9:6379: connection refused")
	requireRedisFinding(t, found, RedisEviction, Unknown, "1 of 3 servers could not be looked at")
	require.Len(t, found, 12)
	f = &facts{servers: []server{down}}
	require.Len(t, f.judge(), 2, "Run reports the others as unknown")
}

func TestJudgeSlots_CountsThoseWithoutServersAndReplicas(t *testing.T) {
	require.Equal(t, OK, judgeSlots(16384, 0, 3).Level)
	require.Contains(t, judgeSlots(16384, 1, 3).Seen, "1 of 3 ranges have no replica")
	require.Contains(t, judgeSlots(10923, 0, 2).Seen, "5461 of 16384 slots have no server")
	require.Equal(t, Fault, judgeSlots(10923, 0, 2).Level)
}

// runRedis runs the checks of a store.
func runRedis(t *testing.T, o RedisOptions) []Finding {
	t.Helper()
	return Run(t.Context(), CheckRedis("store main", o))
}

func TestCheck_SaysWhatAServerDoesNotTell(t *testing.T) {
	server := miniredis.RunT(t)
	found := runRedis(t, RedisOptions{URL: "redis://" + server.Addr()})
	requireRedisFinding(t, found, RedisReach, OK, "a round trip takes")
	requireRedisFinding(t, found, RedisData, Warn, "there are no data under the prefix rb")
	for _, check := range []Name{
		RedisEviction, RedisPersistence, RedisRights,
	} {
		requireRedisFinding(t, found, check, Unknown, "")
	}
	require.Empty(t, server.Keys(), "nothing is written")
	server.HSet(layout.MetaKey("shop"), "version", "1", "shards", "1")
	requireRedisFinding(t, runRedis(t, RedisOptions{URL: "redis://" + server.Addr(), Prefix: "shop"}), RedisData,
		Fault, "schema version 1")
}

func TestCheck_SaysWhyAStoreCannotBeReached(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	for url, says := range map[string]string{
		"redis://" + silent.Addr().String() + "?dial_timeout=50ms": "did not answer in time",
		"redis://127.0.0.1:1": "cannot be reached",
		"redis://a,b":         "several hosts",
	} {
		found := runRedis(t, RedisOptions{URL: url})
		requireRedisFinding(t, found, RedisReach, Fault, says)
		requireRedisFinding(t, found, RedisRights, Unknown, "could not be checked: ")
		require.Len(t, found, 12)
	}
}

func TestCheck_OfAClusterWithAServerThatHangs(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and says nothing
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	silentAt, _ := silent.Addr().(*net.TCPAddr)
	server := miniredis.RunT(t)
	server.Server().SetPreHook(func(c *miniserver.Peer, cmd string, args ...string) bool {
		if !strings.EqualFold(cmd, "cluster") || !strings.EqualFold(args[0], "slots") {
			return false
		}
		c.WriteLen(2)
		// the first has almost all slots, and so the key with the version
		for i, at := range []*net.TCPAddr{silentAt, server.Server().Addr()} {
			c.WriteLen(3)
			c.WriteInt(i * (allSlots - 1))
			c.WriteInt(allSlots - 2 + i)
			c.WriteLen(2)
			c.WriteBulk("127.0.0.1")
			c.WriteInt(at.Port)
		}
		return true
	})
	require.Less(t, 2*stepTimeout+redisTimeout, Limit, "the steps of a check, one after the other")
	check := CheckRedis("store main", RedisOptions{URL: "redis+cluster://" + server.Addr()})
	found, err := check.Run(t.Context()) // without the limit
	require.Error(t, err)
	requireRedisFinding(t, found, RedisReach, Fault, silent.Addr().String()+": redis ")
	requireRedisFinding(t, found, RedisClock, Unknown,
		"1 of 2 servers could not be looked at; the others are fine")
	for _, f := range found {
		if f.Level == Fault {
			require.NotContains(t, f.Seen, server.Addr())
		}
	}
}

func TestReadServer_IsNotDownWhenItsTimeIsOver(t *testing.T) {
	running := miniredis.RunT(t)
	client := goredis.NewClient(&goredis.Options{Addr: running.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &facts{}
	f.servers = []server{f.readServer(ctx, client)}
	requireRedisFinding(t, f.judge(), RedisReach, Unknown, "does not tell the time")
}

func TestCheck_OfARealServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := goredis.NewClient(&goredis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = admin.Close() })
	ctx := t.Context()
	require.NoError(t, admin.HSet(ctx, layout.MetaKey("rb"), "version", layout.Version, "shards", 4).Err())
	found := runRedis(t, RedisOptions{URL: server.URL()})
	for check, level := range map[Name]Level{
		RedisReach: OK, RedisVersion: OK, RedisData: OK,
		RedisClock: OK, RedisEviction: OK, RedisMemory: Warn,
		RedisPersistence: Warn, RedisSaving: OK, RedisReplicas: OK,
		RedisConnections: OK, RedisRights: OK,
		RedisLosses: OK,
	} {
		requireRedisFinding(t, found, check, level, "")
	}
	requireRedisFinding(t, found, RedisPersistence, Warn, "persists nothing")
	requireRedisFinding(t, runRedis(t, RedisOptions{URL: server.URL(), Shards: 8}), RedisData, Fault,
		"the data have 4 shards, not 8")

	for _, pair := range [][2]string{
		{"maxmemory", "100mb"}, {"maxmemory-policy", "allkeys-lru"},
	} {
		require.NoError(t, admin.ConfigSet(ctx, pair[0], pair[1]).Err())
	}
	user := append([]any{"acl", "setuser", "ringback", "reset", "on", ">secret"}, documented(t)...)
	require.NoError(t, admin.Do(ctx, user...).Err())
	url := strings.Replace(server.URL(), "://", "://ringback:secret@", 1)
	found = runRedis(t, RedisOptions{URL: url})
	requireRedisFinding(t, found, RedisRights, OK, "")
	requireRedisFinding(t, found, RedisEviction, Fault, "allkeys-lru")
	requireRedisFinding(t, found, RedisMemory, OK, "")
	require.NoError(t, admin.Do(ctx, "acl", "setuser", "ringback", "-hset", "-config|get",
		"resetkeys", "~rb:*", "~{rb:*").Err())
	found = runRedis(t, RedisOptions{URL: url})
	requireRedisFinding(t, found, RedisRights, Fault, "may not call hset on the keys")
	requireRedisFinding(t, found, RedisEviction, Unknown, "does not tell its maxmemory-policy")
	require.NoError(t, admin.Do(ctx, "acl", "setuser", "ringback", "resetkeys", "~rb:*", "+hset").Err())
	requireRedisFinding(t, runRedis(t, RedisOptions{URL: url}), RedisRights, Fault, "get, del, exists, ")
	require.NoError(t, admin.Do(ctx, "acl", "setuser", "ringback", "-eval").Err())
	requireRedisFinding(t, runRedis(t, RedisOptions{URL: url}), RedisRights, Fault, "may not call eval")
}

func TestCheck_FindsTwoServersAtOneAddress(t *testing.T) {
	t.Parallel()
	first := redistest.Start(t)
	proxy := redistest.StartProxy(t, first.Addr())
	requireRedisFinding(t, runRedis(t, RedisOptions{URL: "redis://" + proxy.Addr()}), RedisReach, OK, "")
	proxy.Lead(first.Addr(), redistest.Start(t).Addr())
	requireRedisFinding(t, runRedis(t, RedisOptions{URL: "redis://" + proxy.Addr()}), RedisReach, Fault,
		"two redis servers answer at one address")
}

// documented returns the rights of docs/redis.md.
func documented(t *testing.T) (rules []any) {
	t.Helper()
	text, err := os.ReadFile("../../docs/redis.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "user ringback on >PASSWORD ")
	require.True(t, found)
	line, _, _ := strings.Cut(after, "\n")
	for rule := range strings.FieldsSeq(line) {
		rules = append(rules, rule)
	}
	return rules
}

func TestCalls_AreThoseOfTheDocumentedRights(t *testing.T) {
	var want []string
	for _, rule := range documented(t) {
		text, _ := rule.(string)
		if name, is := strings.CutPrefix(text, "+"); is {
			want = append(want, name)
		}
	}
	var names []string
	for _, call := range calls {
		names = append(names, strings.Fields(call.commands)...)
	}
	require.ElementsMatch(t, want, names)
	for name := range optional {
		require.Contains(t, names, name)
	}
}
