package redistest_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

func TestServer_KeepsItsDataAcrossAKill(t *testing.T) {
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	opts, err := redis.ParseURL(s.URL())
	require.NoError(t, err)
	client := redis.NewClient(opts)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	require.NoError(t, client.Set(t.Context(), "k", "v", 0).Err())

	s.Kill()
	require.Error(t, client.Ping(t.Context()).Err())
	s.Restart()

	value, err := client.Get(t.Context(), "k").Result()
	require.NoError(t, err)
	require.Equal(t, "v", value)
	s.Stop()
	s.Stop()
}
