package redis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

func TestCluster_HasSixteenShardsSpreadOverItsServers(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3, 0)
	s := open(t, Options{URL: servers.URL()})
	require.Len(t, s.Shards(), 16)
	share := map[string]int{}
	for _, sh := range s.shards {
		share[servers.Master(servers.Slot(sh.Keys.Jobs)).Addr()]++
	}
	require.Len(t, share, 3)
	for addr, shards := range share {
		require.GreaterOrEqual(t, shards, 5, addr)
	}
	require.Len(t, open(t, Options{URL: servers.URL()}).Shards(), 16, "as it was laid out")
}

func TestOpen_RefusesAnotherFormOfAddress(t *testing.T) {
	server := redistest.Start(t)
	for url, says := range map[string]string{
		"redis+cluster://" + server.Addr():                     "not a node of a cluster",
		"redis+sentinel://" + server.Addr() + "?master_name=m": "not a sentinel",
	} {
		_, err := Open(t.Context(), Options{URL: url, Logger: quiet})
		require.ErrorContains(t, err, says, url)
	}
}
