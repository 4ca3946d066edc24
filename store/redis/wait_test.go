package redis

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/storetest"
)

// startReplica starts a replica of a server, and waits until it is connected.
func startReplica(t *testing.T, of *redistest.Server) *redistest.Server {
	t.Helper()
	_, port, err := net.SplitHostPort(of.Addr())
	require.NoError(t, err)
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", port)
	c := client(t, replica.Addr())
	require.Eventually(t, func() bool {
		info, err := c.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	}, time.Minute, 10*time.Millisecond)
	return replica
}

// acknowledgedOffset returns the replication offset that a server's replica has acknowledged, in bytes.
func acknowledgedOffset(t *testing.T, primary *redistest.Server) int64 {
	t.Helper()
	info, err := client(t, primary.Addr()).InfoMap(t.Context(), "replication").Result()
	require.NoError(t, err)
	_, offset, found := strings.Cut(info["Replication"]["slave0"], "offset=")
	require.True(t, found)
	offset, _, _ = strings.Cut(offset, ",")
	return layout.Num(offset)
}

func TestDurability_IsInEveryResultOfAChange(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	replica := startReplica(t, primary)
	s := open(t, Options{URL: primary.URL(), Wait: connect.Wait{Replicas: 1, Timeout: time.Minute}})
	reached := func(want int, got *job.Durability) {
		t.Helper()
		require.Equal(t, &job.Durability{Replicas: want}, got)
	}
	later := entry("a")
	later.Delay, later.Fingerprint = time.Hour, []byte("print")
	token := store.NewToken()
	for range 2 { // a repeat waits too
		taken, err := s.Shards()[0].Insert(t.Context(), token, []store.NewJob{later})
		require.NoError(t, err)
		reached(1, taken[0].Job.Durability)
	}
	taken, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{later})
	require.NoError(t, err)
	require.Equal(t, store.Existing, taken[0].Outcome)
	reached(1, taken[0].Job.Durability)
	require.NoError(t, s.Client.ScriptFlush(t.Context()).Err())
	j, err := storetest.Edit(t.Context(), s.Shards()[0], store.NewToken(), ref("a"),
		func(spec *job.Spec) { spec.Retries = new(3) })
	require.NoError(t, err)
	reached(1, j.Durability)
	j, err = s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("a"), store.Cancellation{})
	require.NoError(t, err)
	reached(1, j.Durability)
	j, err = reviveOne(t, s, store.NewToken(), "a", 0)
	require.NoError(t, err)
	reached(1, j.Durability)
	topic, err := store.PutTopic(t.Context(), s,
		store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{}})
	require.NoError(t, err)
	reached(1, topic.Durability)
	token = store.NewToken()
	for range 2 {
		put, err := store.PutLane(t.Context(), s.Shards()[0], token,
			store.Lane{Queue: lane, Settings: policy.Lane{LaneConcurrency: 3}})
		require.NoError(t, err)
		reached(1, put.Durability)
	}
	offset := acknowledgedOffset(t, primary)
	_, err = s.Shards()[0].Alarm(t.Context(), store.NewToken(),
		store.Alarm{Namespace: lane.Namespace, Topic: lane.Topic, Raised: true})
	require.NoError(t, err)
	require.Greater(t, acknowledgedOffset(t, primary), offset, "an alarm waits as well")
	j, err = s.Shards()[0].Get(t.Context(), ref("a"))
	require.NoError(t, err)
	require.Nil(t, j.Durability)
	require.NoError(t, s.Close())

	replica.Pause()
	s = open(t, Options{URL: primary.URL(), Wait: connect.Wait{Replicas: 1, Timeout: 20 * time.Millisecond}})
	taken, err = s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("b")})
	require.NoError(t, err, "a durability that is not reached is no error")
	reached(0, taken[0].Job.Durability)
	taken, err = s.Shards()[0].Insert(t.Context(), token, []store.NewJob{later})
	require.NoError(t, err)
	reached(0, taken[0].Job.Durability)
	replica.Resume()
}

func TestDurability_IsNotReportedWithoutAWait(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	startReplica(t, primary)
	s := open(t, Options{URL: primary.URL(), Wait: connect.Wait{Replicas: 1, Timeout: time.Minute}})
	token := store.NewToken()
	taken, err := s.Shards()[0].Insert(t.Context(), token, []store.NewJob{entry("a")})
	require.NoError(t, err)
	require.Equal(t, 1, taken[0].Job.Durability.Replicas)
	setMaxMemory(t, client(t, primary.Addr()), "1")
	taken, err = s.Shards()[0].Insert(t.Context(), token, []store.NewJob{entry("a")})
	require.NoError(t, err)
	require.Equal(t, &job.Durability{}, taken[0].Job.Durability, "no marker was written to wait for")
}

func TestDurability_NewPrimaryWithoutWaitAcceptsJobs(t *testing.T) {
	fake := miniredis.RunT(t)
	able := true
	require.NoError(t, fake.Server().Register("WAITAOF", func(c *server.Peer, _ string, _ []string) {
		if !able {
			c.WriteError("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
			return
		}
		c.WriteLen(2)
		c.WriteInt(1)
		c.WriteInt(0)
	}))
	var log testkit.Log
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s := open(t,
		Options{URL: "redis://" + fake.Addr(), Wait: connect.Wait{Fsync: true, Timeout: time.Second}, Logger: logger})
	log.Reset()
	able = false
	for _, id := range []string{"a", "b"} {
		taken, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry(id)})
		require.NoError(t, err)
		require.Equal(t, &job.Durability{}, taken[0].Job.Durability)
	}
	require.Equal(t, 1, strings.Count(log.String(), "WAIT/WAITAOF rejected"), log.String())
}

func TestDurability_ClusterWaitsAtTheServerOfTheJob(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3, 1)
	s := open(t, Options{URL: servers.URL(), Wait: connect.Wait{Replicas: 1, Timeout: time.Minute}})
	for shard := range s.Shards() {
		taken, err := s.Shards()[shard].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("a")})
		require.NoError(t, err)
		require.Equal(t, &job.Durability{Replicas: 1}, taken[0].Job.Durability)
	}
}

func TestDurability_FsyncNeedsServerSupport(t *testing.T) {
	_, err := Open(t.Context(),
		Options{URL: redistest.Start(t).URL(), Wait: connect.Wait{Fsync: true, Timeout: time.Second}, Logger: quiet})
	require.Error(t, err) // Redis 7.0 does not know the command, a later one needs appendonly yes
	require.Regexp(t, "needs (Redis 7.2|appendonly yes)", err.Error())
}

func TestDurability_WaitsForFsync(t *testing.T) {
	// Redis 7.2 may not be installed. This server replies as documented.
	fake := miniredis.RunT(t)
	var asked []string
	require.NoError(t, fake.Server().Register("WAITAOF", func(c *server.Peer, _ string, args []string) {
		asked = args
		c.WriteLen(2)
		c.WriteInt(1)
		c.WriteInt(2)
	}))
	s := open(t, Options{
		URL:  "redis://" + fake.Addr(),
		Wait: connect.Wait{Fsync: true, Replicas: 2, Timeout: 30 * time.Millisecond},
	})
	taken, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("a")})
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "30"}, asked)
	require.Equal(t, &job.Durability{Replicas: 2, Synced: true}, taken[0].Job.Durability)
}
