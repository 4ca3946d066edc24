package redis

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

	"github.com/ringback/ringback/doctor"
	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// requireFinding fails the test unless there is a finding of a check with a level and words.
func requireFinding(t *testing.T, found []doctor.Finding, check doctor.Name, level doctor.Level, seen string) {
	t.Helper()
	require.True(t, slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Check == check && f.Level == level && strings.Contains(f.Seen, seen) &&
			(f.Remedy == "") == (level == doctor.OK)
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
			"timeout": "0", "tcp-keepalive": "300", "min-replicas-to-write": "0", "latency-monitor-threshold": "100",
		},
		spikes: map[string]time.Duration{}, rights: &rights{},
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
		check  doctor.Name
		level  doctor.Level
		seen   string
		change func(*facts, *server)
	}{
		{doctor.RedisReach, doctor.OK, "takes 200µs (the slowest of 3: 1ms)", with()},
		{doctor.RedisReach, doctor.Warn, "takes 30ms", func(_ *facts, s *server) {
			s.trips = []time.Duration{30 * time.Millisecond}
		}},
		{doctor.RedisReach, doctor.Unknown, "does not tell the time", func(_ *facts, s *server) { s.trips = nil }},

		{doctor.RedisVersion, doctor.OK, "Redis 7.2.4, standalone", with()},
		{doctor.RedisVersion, doctor.OK, "Redis 6.2.0", with("redis_version=6.2.0")},
		{doctor.RedisVersion, doctor.Fault, "Redis 6.0.16 lacks commands", with("redis_version=6.0.16")},
		{doctor.RedisVersion, doctor.Fault, "Redis 7.0.15 cannot wait for fsync", wait(fsync, "redis_version=7.0.15")},
		{doctor.RedisVersion, doctor.OK, "Redis 7.2.4", wait(fsync)},
		{doctor.RedisVersion, doctor.Fault, "one of a cluster", with("redis_mode=cluster")},
		{
			doctor.RedisVersion, doctor.OK, "cluster",
			func(f *facts, s *server) { f.cluster = true; s.info["redis_mode"] = "cluster" },
		},
		{doctor.RedisVersion, doctor.Fault, "one of a sentinel", with("redis_mode=sentinel")},
		{doctor.RedisVersion, doctor.Unknown, "does not tell its version", with("redis_version=")},

		{doctor.RedisClock, doctor.OK, "within", with()},
		{doctor.RedisClock, doctor.Warn, "the clock of Redis is 12s " +
			"behind", func(_ *facts, s *server) { s.ahead = -12 * time.Second }},
		{doctor.RedisClock, doctor.Fault, "10m0s ahead", func(_ *facts, s *server) { s.ahead = 10 * time.Minute }},
		{doctor.RedisClock, doctor.Unknown, "does not tell the time", func(_ *facts, s *server) { s.trips = nil }},

		{doctor.RedisEviction, doctor.OK, "is noeviction", with()},
		{doctor.RedisEviction, doctor.Fault, "is allkeys-lru", with("maxmemory-policy=allkeys-lru")},
		{doctor.RedisEviction, doctor.Fault, "is volatile-ttl", with("maxmemory-policy=volatile-ttl")},
		{doctor.RedisEviction, doctor.Unknown, "does not tell", func(_ *facts, s *server) { s.settings = nil }},

		{doctor.RedisMemory, doctor.OK, "977 KiB of 95.4 MiB are used", with()},
		{doctor.RedisMemory, doctor.Warn, "(maxmemory) are used", with("used_memory=81000000")},
		{doctor.RedisMemory, doctor.Fault, "memory is full", with("used_memory=100000001")},
		{doctor.RedisMemory, doctor.Warn, "there is no maxmemory; 977 KiB are used", with("maxmemory=0")},
		{doctor.RedisMemory, doctor.Warn, "(the machine) are used", with("maxmemory=0", "used_memory=7000000000")},
		{doctor.RedisMemory, doctor.Unknown, "there is no maxmemory", with("maxmemory=0", "total_system_memory=")},
		{doctor.RedisMemory, doctor.Unknown, "does not tell its memory", func(_ *facts, s *server) { s.info = nil }},

		{doctor.RedisPersistence, doctor.OK, "up to about two seconds", with()},
		{doctor.RedisPersistence, doctor.OK, "always: an accepted job survives", with("appendfsync=always")},
		{doctor.RedisPersistence, doctor.OK, `"synced": true survives`, wait(fsync)},
		{doctor.RedisPersistence, doctor.Warn, "some 30 seconds", with("appendfsync=no")},
		{doctor.RedisPersistence, doctor.Warn, "snapshots only (save 3600 1)", with("appendonly=no", "save=3600 1")},
		{doctor.RedisPersistence, doctor.Warn, "persists nothing", with("appendonly=no")},
		{doctor.RedisPersistence, doctor.Fault, "appendonly is no: Ringback refuses to " +
			"start", wait(fsync, "appendonly=no")},
		{doctor.RedisPersistence, doctor.Unknown, "does not tell", func(_ *facts, s *server) { s.settings = nil }},

		{doctor.RedisSaving, doctor.OK, "succeeded", with()},
		{doctor.RedisSaving, doctor.Fault, "rdb_last_bgsave_status is err", with("rdb_last_bgsave_status=err")},
		{doctor.RedisSaving, doctor.Fault, "aof_last_write_status is err", with("aof_last_write_status=err")},
		{doctor.RedisSaving, doctor.Fault, "is loading", with("loading=1")},
		{doctor.RedisSaving, doctor.Unknown, "does not tell", func(_ *facts, s *server) { s.info = nil }},

		{doctor.RedisReplicas, doctor.OK, "no replicas", with()},
		{doctor.RedisReplicas, doctor.OK, "1 replicas follow", wait(connect.Wait{Replicas: 1}, "connected_slaves=1",
			replica("online", "1"))},
		{doctor.RedisReplicas, doctor.OK, "1 replicas follow", with("connected_slaves=1", replica("online", "1"),
			"min-replicas-to-write=1")},
		{doctor.RedisReplicas, doctor.Warn, "no write waits for " +
			"them", with("connected_slaves=1", replica("online", "1"))},
		{doctor.RedisReplicas, doctor.Warn, "10.0.0.2:6379 is " +
			"wait_bgsave", with("connected_slaves=1", replica("wait_bgsave", "0"))},
		{doctor.RedisReplicas, doctor.Warn, "is online, 60 s " +
			"late", with("connected_slaves=1", replica("online", "60"))},
		{doctor.RedisReplicas, doctor.Warn, "0 replicas follow, --redis-wait asks for 1", wait(
			connect.Wait{Replicas: 1},
		)},
		{doctor.RedisReplicas, doctor.Fault, "min-replicas-to-write is 1: Redis refuses all " +
			"writes", with("min-replicas-to-write=1")},
		{doctor.RedisReplicas, doctor.Fault, "is a replica", with("role=slave")},
		{doctor.RedisReplicas, doctor.Unknown, "does not tell", func(_ *facts, s *server) { s.info = nil }},

		{doctor.RedisConnections, doctor.OK, "5 of 10000 connections are open, a process takes up to 76", with()},
		{doctor.RedisConnections, doctor.Warn, "9990 of 10000", with("connected_clients=9990")},
		{doctor.RedisConnections, doctor.Warn, "tcp-keepalive is 0", with("tcp-keepalive=0")},
		{doctor.RedisConnections, doctor.Warn, "timeout is 3", with("timeout=3")},
		{doctor.RedisConnections, doctor.Unknown, "does not tell", func(_ *facts, s *server) { s.info = nil }},

		{doctor.RedisRights, doctor.OK, "has all rights", with()},
		{doctor.RedisRights, doctor.Fault, "may not call hset, " +
			"zadd", func(_ *facts, s *server) { s.rights = &rights{missing: []string{"hset", "zadd"}} }},
		{doctor.RedisRights, doctor.Warn, "may not call " +
			"unlink", func(_ *facts, s *server) { s.rights = &rights{optional: []string{"unlink"}} }},
		{doctor.RedisRights, doctor.Unknown, "from version 7 on", func(_ *facts, s *server) { s.rights = nil }},

		{doctor.RedisLatency, doctor.OK, "no spike", with()},
		{doctor.RedisLatency, doctor.Warn, "fork 900ms", func(_ *facts, s *server) {
			s.spikes = map[string]time.Duration{"fork": 900 * time.Millisecond, "command": 100 * time.Millisecond}
		}},
		{doctor.RedisLatency, doctor.Unknown, "records no spikes", with("latency-monitor-threshold=0")},
		{doctor.RedisLatency, doctor.Unknown, "does not tell its " +
			"latency", func(_ *facts, s *server) { s.spikes = nil }},

		{doctor.RedisLosses, doctor.OK, "no key was evicted", with()},
		{doctor.RedisLosses, doctor.Warn, "evicted 3 keys", with("evicted_keys=3")},
		{doctor.RedisLosses, doctor.Warn, "rejected 2 connections", with("rejected_connections=2")},
		{doctor.RedisLosses, doctor.Unknown, "does not tell", func(_ *facts, s *server) { s.info = nil }},
	} {
		f, s := &facts{maxConns: 64, shards: 4}, healthy()
		c.change(f, &s)
		f.servers = []server{s}
		requireFinding(t, f.judge(), c.check, c.level, c.seen)
	}
}

func TestJudge_SaysWhichOfSeveralServers(t *testing.T) {
	sick := healthy()
	sick.addr, sick.settings["maxmemory-policy"] = "10.0.0.9:6379", "allkeys-lru"
	f := &facts{servers: []server{healthy(), sick, healthy()}}
	found := f.judge()
	requireFinding(t, found, doctor.RedisEviction, doctor.Fault, "10.0.0.9:6379: maxmemory-policy is allkeys-lru")
	requireFinding(t, found, doctor.RedisSaving, doctor.OK, "; and 2 more servers are fine")

	again := healthy()
	again.addr, again.settings["maxmemory-policy"] = "10.0.0.8:6379", "allkeys-lru"
	f = &facts{servers: []server{healthy(), again, sick}}
	requireFinding(t, f.judge(), doctor.RedisEviction, doctor.Fault,
		"10.0.0.8:6379, 10.0.0.9:6379: maxmemory-policy is allkeys-lru")
}

func TestJudge_OfAServerThatIsDownSaysNothingElse(t *testing.T) {
	down := server{addr: "10.0.0.9:6379", down: true, err: errors.New("connection refused")}
	f := &facts{servers: []server{healthy(), healthy(), down}}
	found := f.judge()
	requireFinding(t, found, doctor.RedisReach, doctor.Fault, "10.0.0.9:6379: connection refused")
	requireFinding(t, found, doctor.RedisEviction, doctor.Unknown, "1 of 3 servers could not be looked at")
	require.Len(t, found, 13)
	f = &facts{servers: []server{down}}
	require.Len(t, f.judge(), 2, "Run reports the others as unknown")
}

func TestJudgeSlots_CountsThoseWithoutServersAndReplicas(t *testing.T) {
	require.Equal(t, doctor.OK, judgeSlots(16384, 0, 3).Level)
	require.Contains(t, judgeSlots(16384, 1, 3).Seen, "1 of 3 ranges have no replica")
	require.Contains(t, judgeSlots(10923, 0, 2).Seen, "5461 of 16384 slots have no server")
	require.Equal(t, doctor.Fault, judgeSlots(10923, 0, 2).Level)
}

// run runs the checks of a store.
func run(t *testing.T, o Options) []doctor.Finding {
	t.Helper()
	return doctor.Run(t.Context(), Check("store main", o))
}

func TestCheck_SaysWhatAServerDoesNotTell(t *testing.T) {
	server := miniredis.RunT(t)
	found := run(t, Options{URL: "redis://" + server.Addr()})
	requireFinding(t, found, doctor.RedisReach, doctor.OK, "a round trip takes")
	requireFinding(t, found, doctor.RedisData, doctor.Warn, "there are no data under the prefix rb")
	for _, check := range []doctor.Name{
		doctor.RedisEviction, doctor.RedisPersistence, doctor.RedisRights, doctor.RedisLatency,
	} {
		requireFinding(t, found, check, doctor.Unknown, "")
	}
	require.Empty(t, server.Keys(), "nothing is written")
	server.HSet(layout.MetaKey("shop"), "version", "1", "shards", "1")
	requireFinding(t, run(t, Options{URL: "redis://" + server.Addr(), Prefix: "shop"}), doctor.RedisData,
		doctor.Fault, "schema version 1")
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
		found := run(t, Options{URL: url})
		requireFinding(t, found, doctor.RedisReach, doctor.Fault, says)
		requireFinding(t, found, doctor.RedisRights, doctor.Unknown, "could not be checked: ")
		require.Len(t, found, 13)
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
	require.Less(t, 2*stepTimeout+serverTimeout, doctor.Limit, "the steps of a check, one after the other")
	check := Check("store main", Options{URL: "redis+cluster://" + server.Addr()})
	found, err := check.Run(t.Context()) // without the limit
	require.Error(t, err)
	requireFinding(t, found, doctor.RedisReach, doctor.Fault, silent.Addr().String()+": redis ")
	requireFinding(t, found, doctor.RedisClock, doctor.Unknown,
		"1 of 2 servers could not be looked at; the others are fine")
	for _, f := range found {
		if f.Level == doctor.Fault {
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
	requireFinding(t, f.judge(), doctor.RedisReach, doctor.Unknown, "does not tell the time")
}

func TestCheck_OfARealServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := goredis.NewClient(&goredis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = admin.Close() })
	ctx := t.Context()
	require.NoError(t, admin.HSet(ctx, layout.MetaKey("rb"), "version", layout.Version, "shards", 4).Err())
	found := run(t, Options{URL: server.URL()})
	for check, level := range map[doctor.Name]doctor.Level{
		doctor.RedisReach: doctor.OK, doctor.RedisVersion: doctor.OK, doctor.RedisData: doctor.OK,
		doctor.RedisClock: doctor.OK, doctor.RedisEviction: doctor.OK, doctor.RedisMemory: doctor.Warn,
		doctor.RedisPersistence: doctor.Warn, doctor.RedisSaving: doctor.OK, doctor.RedisReplicas: doctor.OK,
		doctor.RedisConnections: doctor.OK, doctor.RedisRights: doctor.OK, doctor.RedisLatency: doctor.Unknown,
		doctor.RedisLosses: doctor.OK,
	} {
		requireFinding(t, found, check, level, "")
	}
	requireFinding(t, found, doctor.RedisPersistence, doctor.Warn, "persists nothing")
	requireFinding(t, run(t, Options{URL: server.URL(), Shards: 8}), doctor.RedisData, doctor.Fault,
		"the data have 4 shards, not 8")

	for _, pair := range [][2]string{
		{"maxmemory", "100mb"}, {"maxmemory-policy", "allkeys-lru"}, {"latency-monitor-threshold", "100"},
	} {
		require.NoError(t, admin.ConfigSet(ctx, pair[0], pair[1]).Err())
	}
	user := append([]any{"acl", "setuser", "ringback", "reset", "on", ">secret"}, documented(t)...)
	require.NoError(t, admin.Do(ctx, user...).Err())
	url := strings.Replace(server.URL(), "://", "://ringback:secret@", 1)
	found = run(t, Options{URL: url})
	requireFinding(t, found, doctor.RedisRights, doctor.OK, "")
	requireFinding(t, found, doctor.RedisEviction, doctor.Fault, "allkeys-lru")
	requireFinding(t, found, doctor.RedisMemory, doctor.OK, "")
	requireFinding(t, found, doctor.RedisLatency, doctor.Unknown, "does not tell its latency spikes")
	require.NoError(t, admin.Do(ctx, "acl", "setuser", "ringback", "-hset", "-config|get", "+latency|latest",
		"resetkeys", "~rb:*", "~{rb:*").Err())
	found = run(t, Options{URL: url})
	requireFinding(t, found, doctor.RedisRights, doctor.Fault, "may not call hset on the keys")
	requireFinding(t, found, doctor.RedisEviction, doctor.Unknown, "does not tell its maxmemory-policy")
	requireFinding(t, found, doctor.RedisLatency, doctor.OK, "no spike")
	require.NoError(t, admin.Do(ctx, "acl", "setuser", "ringback", "resetkeys", "~rb:*", "+hset").Err())
	requireFinding(t, run(t, Options{URL: url}), doctor.RedisRights, doctor.Fault, "get, set, del, ")
	require.NoError(t, admin.Do(ctx, "acl", "setuser", "ringback", "-eval").Err())
	requireFinding(t, run(t, Options{URL: url}), doctor.RedisRights, doctor.Fault, "may not call eval")
}

func TestCheck_FindsTwoServersAtOneAddress(t *testing.T) {
	t.Parallel()
	first := redistest.Start(t)
	proxy := redistest.StartProxy(t, first.Addr())
	requireFinding(t, run(t, Options{URL: "redis://" + proxy.Addr()}), doctor.RedisReach, doctor.OK, "")
	proxy.Lead(first.Addr(), redistest.Start(t).Addr())
	requireFinding(t, run(t, Options{URL: "redis://" + proxy.Addr()}), doctor.RedisReach, doctor.Fault,
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
	for line := range strings.Lines(calls) {
		words := strings.Fields(line)
		if words[0] == "config" {
			words[0] += "|" + words[1]
		}
		names = append(names, words[0])
	}
	require.ElementsMatch(t, want, names)
	for name := range optional {
		require.Contains(t, names, name)
	}
}
