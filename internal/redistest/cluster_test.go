package redistest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// dial is a client for a server, or for a cluster's one node, that closes with the test.
func dial(t *testing.T, s *redistest.Server) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(s.URL())
	require.NoError(t, err)
	opts.MaxRetries = -1
	client := redis.NewClient(opts)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// dialCluster is a client for a cluster that closes with the test.
func dialCluster(t *testing.T, c *redistest.Cluster) *redis.ClusterClient {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func TestCluster_SpreadsSlotsOverItsMasters(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	require.Len(t, c.Nodes(), 3)
	require.Equal(t, c.Nodes(), c.Masters())
	require.Equal(t, "redis+cluster://"+strings.Join(c.Addrs(), ","), c.URL())
	require.Equal(t, 12182, c.Slot("foo"))
	require.Same(t, c.Nodes()[0], c.Master(0))
	require.Same(t, c.Nodes()[2], c.Master(12182))
	require.Same(t, c.Nodes()[2], c.Master(16383))
	require.Empty(t, c.ReplicasOf(c.Nodes()[0]))
	require.NoError(t, dialCluster(t, c).Set(t.Context(), "foo", "bar", 0).Err())
	require.ErrorContains(t, dial(t, c.Nodes()[0]).Get(t.Context(), "foo").Err(), "MOVED 12182 "+c.Master(12182).Addr())
}

func TestCluster_PromotesAReplicaOfAKilledMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1)
	require.Len(t, c.Nodes(), 6)
	old := c.Master(c.Slot("foo"))
	client := dial(t, old)
	require.NoError(t, client.Set(t.Context(), "foo", "bar", 0).Err())
	replicas := c.ReplicasOf(old)
	require.Len(t, replicas, 1)
	require.NoError(t, client.Wait(t.Context(), 1, 0).Err())
	old.Kill()
	c.AwaitOK()

	require.Same(t, replicas[0], c.Master(c.Slot("foo")))
	require.Contains(t, c.Masters(), replicas[0])
	require.NotContains(t, c.Masters(), old)
	value, err := dial(t, replicas[0]).Get(t.Context(), "foo").Result()
	require.NoError(t, err)
	require.Equal(t, "bar", value)

	old.Restart()
	c.AwaitOK()
	require.Equal(t, []*redistest.Server{old}, c.ReplicasOf(replicas[0]))
}

func TestCluster_PromotesAReplicaOfAPausedMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1)
	old := c.Master(0)
	old.Pause()
	c.AwaitOK()
	promoted := c.Master(0)
	require.NotSame(t, old, promoted)
	old.Resume()
	c.AwaitOK()
	require.Same(t, promoted, c.Master(0), "the one that came back claims nothing")
}

func TestCluster_MovesASlotWithItsKeys(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0, "--requirepass", "a password", "--masterauth", "a password")
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), Password: "a password"})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	const keys = 250
	for i := range keys {
		require.NoError(t, client.Set(t.Context(), fmt.Sprintf("{foo}%d", i), i, 0).Err())
	}
	slot := c.Slot("foo")
	from, to := c.Master(slot), c.Masters()[0]
	require.NotSame(t, from, to)

	move := c.BeginMove(slot, to)
	require.Equal(t, 10, move.Carry(10))
	require.Same(t, from, c.Master(slot), "it is the old one's until the end")
	require.NoError(t, client.Set(t.Context(), "{foo}new", "there already", 0).Err())
	require.EqualValues(t, keys-10, counted(t, client, from, slot))
	require.EqualValues(t, 11, counted(t, client, to, slot), "new keys are created at the new master")
	move.Finish()

	require.Same(t, to, c.Master(slot))
	require.Zero(t, counted(t, client, from, slot))
	require.EqualValues(t, keys+1, counted(t, client, to, slot))
	c.AwaitOK()
	c.MoveSlot(slot, from)
	require.Same(t, from, c.Master(slot))
	require.EqualValues(t, keys+1, counted(t, client, from, slot))
}

// counted is how many keys of a slot a node has.
func counted(t *testing.T, client *redis.ClusterClient, s *redistest.Server, slot int) (count int64) {
	t.Helper()
	found := false
	require.NoError(t, client.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) (err error) {
		if node.Options().Addr != s.Addr() {
			return nil
		}
		found = true
		count, err = node.ClusterCountKeysInSlot(ctx, slot).Result()
		return err
	}))
	require.True(t, found)
	return count
}
