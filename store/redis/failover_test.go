package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

// requireRecovery repeats a call until it succeeds. It fails the test for errors other than store.ErrUnavailable.
func requireRecovery(t *testing.T, call func() error) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := call()
		if err != nil {
			require.ErrorIs(t, err, store.ErrUnavailable)
		}
		return err == nil
	}, testkit.MustCome, 20*time.Millisecond)
}

// requireWakeup inserts a job and requires a wake-up for its queue.
func requireWakeup(t *testing.T, s *Store, shard int, id string) {
	t.Helper()
	requireRecovery(t, func() error {
		_, err := s.Shards()[shard].Insert(t.Context(), store.NewToken(), []store.NewJob{entry(id)})
		return err
	})
	requireRecovery(t, func() error {
		notified, err := s.Shards()[shard].Wait(t.Context(),
			store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Second})
		if err == nil && len(notified) == 0 {
			// Carry repeats the wake-up within a second, as it does in a process.
			_, err = s.Shards()[shard].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
			if err == nil {
				err = &store.UnavailableError{Reason: "no wake-up yet"}
			}
		}
		return err
	})
}

// openReplicated opens a store for writes that must reach a replica, and another whose writes hardly wait: after a
// failover there is no replica.
func openReplicated(t *testing.T, url string) (safe, s *Store) {
	t.Helper()
	safe = open(t, Options{URL: url, Wait: connect.Wait{Replicas: 1, Timeout: 2 * time.Minute}})
	return safe, open(t, Options{URL: url, Wait: connect.Wait{Replicas: 1, Timeout: 100 * time.Millisecond}})
}

func TestFailover_OfSentinelsPrimary(t *testing.T) {
	t.Parallel()
	servers := redistest.StartSentinel(t, 1)
	safe, s := openReplicated(t, servers.URL())
	taken, err := safe.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("a")})
	require.NoError(t, err)
	require.Equal(t, 1, taken[0].Job.Durability.Replicas)
	topic := store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{}}
	before, err := store.PutTopic(t.Context(), safe, topic)
	require.NoError(t, err)
	old := servers.Master()
	old.Kill()
	servers.AwaitMaster(old)
	requireRecovery(t, func() error { return s.Ping(t.Context()) })
	_, err = s.Shards()[0].Get(t.Context(), ref("a"))
	require.NoError(t, err, "what a replica had is not lost")
	requireWakeup(t, s, 0, "b")
	after, err := store.PutTopic(t.Context(), s, topic)
	require.NoError(t, err)
	require.Greater(t, after.Revision, before.Revision)
}

// isolateReplica disconnects the only replica, so that it does not get later writes. promote kills the primary and
// waits until the replica has taken over.
func isolateReplica(t *testing.T, servers *redistest.Sentinel) (promote func()) {
	t.Helper()
	old, replica := servers.Master(), servers.Replicas()[0]
	replica.Pause() // so that it does not connect again
	require.NoError(t, client(t, old.Addr()).ClientKillByFilter(t.Context(), "type", "replica").Err())
	return func() {
		old.Kill()
		replica.Resume()
		servers.AwaitMaster(old)
	}
}

func TestFailover_DurabilityReportsUnreplicatedWrites(t *testing.T) {
	t.Parallel()
	servers := redistest.StartSentinel(t, 1)
	safe, s := openReplicated(t, servers.URL())
	insertOne := func(s *Store, id string) int {
		taken, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry(id)})
		require.NoError(t, err)
		return taken[0].Job.Durability.Replicas
	}
	require.Equal(t, 1, insertOne(safe, "saved"))
	promote := isolateReplica(t, servers)
	require.Zero(t, insertOne(s, "at risk"))
	promote()
	requireRecovery(t, func() error { return s.Ping(t.Context()) })
	_, err := s.Shards()[0].Get(t.Context(), ref("saved"))
	require.NoError(t, err)
	_, err = s.Shards()[0].Get(t.Context(), ref("at risk"))
	require.ErrorIs(t, err, store.ErrNotFound, "its answer had said so")
	require.Equal(t, 0, insertOne(s, "at risk"), "and a repeat takes it anew")
}

func TestFailover_RolledBackPoliciesAreDetected(t *testing.T) {
	t.Parallel()
	servers := redistest.StartSentinel(t, 1)
	s := open(t, Options{URL: servers.URL()})
	put := func(workers int) store.Topic {
		topic, err := store.PutTopic(t.Context(), s,
			store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Workers: workers}})
		require.NoError(t, err)
		return topic
	}
	first := put(1)
	replica := servers.Replicas()[0]
	require.Eventually(t, func() bool {
		n, err := client(t, replica.Addr()).HLen(t.Context(), layout.DocumentsKey("rb", store.KindTopic)).Result()
		return err == nil && n > 0
	}, testkit.MustCome, 10*time.Millisecond)
	promote := isolateReplica(t, servers)
	_, err := store.PutTopic(t.Context(), s, store.Topic{Namespace: lane.Namespace, Name: "lost"})
	require.NoError(t, err)
	lost := put(2)
	promote()
	requireRecovery(t, func() error { return s.Ping(t.Context()) })
	last := put(3)
	require.Greater(t, last.Revision, lost.Revision, "who has seen the lost one must read again")
	changes, err := s.ListChanges(t.Context(), store.KindTopic, lost.Revision)
	require.NoError(t, err)
	require.True(t, changes.IsComplete, "also what did not change since then")
	require.Equal(t, last.Revision, changes.Revision)
	require.Len(t, changes.Documents, 1)
	changes, err = s.ListChanges(t.Context(), store.KindTopic, first.Revision)
	require.NoError(t, err)
	require.False(t, changes.IsComplete, "the replica knew it")
}

func TestFailover_OfAClusterServer(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3, 1)
	safe, s := openReplicated(t, servers.URL())
	const shard = 3
	taken, err := safe.Shards()[shard].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("a")})
	require.NoError(t, err)
	require.Equal(t, 1, taken[0].Job.Durability.Replicas)
	// it has a connection now
	_, err = s.Shards()[shard].Wait(t.Context(),
		store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Second})
	require.NoError(t, err)
	servers.Master(servers.Slot(s.shards[shard].Keys.CarrierWakeup)).Kill()
	servers.AwaitOK()
	requireRecovery(t, func() error { return s.Ping(t.Context()) })
	_, err = s.Shards()[shard].Get(t.Context(), ref("a"))
	require.NoError(t, err)
	requireWakeup(t, s, shard, "b")
}

func TestCluster_SlotMovesWithItsJobs(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3, 0)
	s := open(t, Options{URL: createUserOnNodes(t, servers)})
	const shard = 3
	_, err := s.Shards()[shard].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("a")})
	require.NoError(t, err)
	_, err = s.Shards()[shard].Wait(t.Context(),
		store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Second})
	require.NoError(t, err)
	slot := servers.Slot(s.shards[shard].Keys.CarrierWakeup)
	from := servers.Master(slot)
	to := servers.Masters()[0]
	if to == from {
		to = servers.Masters()[1]
	}
	move := servers.BeginMove(slot, to)
	for move.Carry(1) > 0 { // key after key, calls in between
		_, err := s.Shards()[shard].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("b")})
		if err != nil {
			require.ErrorIs(t, err, store.ErrUnavailable)
		}
	}
	move.Finish()
	requireRecovery(t, func() error { return s.Ping(t.Context()) })
	requireWakeup(t, s, shard, "c")
	held, err := s.Shards()[shard].Claim(t.Context(), store.NewToken(), store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: lane, Max: 10, Timeout: time.Second}}, Max: 10, MaxBytes: 1 << 20,
	})
	require.NoError(t, err)
	ids := map[string]bool{}
	for _, h := range held.Jobs {
		ids[h.ID] = true
	}
	require.True(t, ids["a"] && ids["c"], "%v", ids)
}
