package redistest_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

func TestSentinel_ReplacesAKilledMaster(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 2)
	require.Len(t, s.Sentinels(), 3)
	require.Len(t, s.Replicas(), 2)
	addrs := make([]string, 0, 3)
	for _, sentinel := range s.Sentinels() {
		addrs = append(addrs, sentinel.Addr())
	}
	require.Equal(t, "redis+sentinel://"+strings.Join(addrs, ",")+"/0?master_name=rb", s.URL())

	old := s.Master()
	require.NotContains(t, s.Replicas(), old)
	before := s.Switches()
	old.Kill()
	master := s.AwaitMaster(old)
	after := s.Switches()
	require.Greater(t, after, before)
	require.NotSame(t, old, master)
	require.Same(t, master, s.Master())
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "rb", SentinelAddrs: addrs})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())

	s.AwaitOK()
	old.Restart()
	s.AwaitOK()
	require.Same(t, master, s.Master(), "the one that came back is a replica")
	require.Equal(t, after, s.Switches())
	master.Kill()
	master.Restart()
	require.Equal(t, "master", role(t, master), "what it became is kept")
}

func TestSentinel_ReplacesAPausedMaster(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1, "--requirepass", "secret", "--masterauth", "secret")
	old := s.Master()
	old.Pause()
	master := s.AwaitMaster(old)
	old.Resume()
	s.AwaitOK()
	require.Same(t, master, s.Master())
	s.Sentinels()[0].Kill()
	require.Same(t, master, s.AwaitMaster(nil), "two are enough to ask")
	s.Sentinels()[0].Restart()
	require.Same(t, master, s.AwaitMaster(nil), "it has kept what it knew")
	s.AwaitOK()
	require.NoError(t, dial(t, s.Sentinels()[1]).Do(t.Context(), "SENTINEL", "FAILOVER", "rb").Err())
	require.Same(t, old, s.AwaitMaster(master), "asked to, they depose one that runs")
}

// role returns a server's role.
func role(t *testing.T, s *redistest.Server) string {
	t.Helper()
	answer, err := dial(t, s).Do(t.Context(), "ROLE").Slice()
	require.NoError(t, err)
	require.NotEmpty(t, answer)
	return answer[0].(string)
}
