package redis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/store/redis/layout"
)

func TestCluster_HasSixteenShardsSpreadOverItsServers(t *testing.T) {
	t.Parallel()
	servers := redistest.StartCluster(t, 3, 0)
	s := open(t, Options{URL: servers.URL()})
	require.Len(t, s.Shards(), 16)
	share := map[string]int{}
	for _, sh := range s.shards {
		slot := servers.Slot(sh.Keys.CarrierWakeup)
		require.Equal(t, slot, layout.HashSlot(sh.Keys.CarrierWakeup[1:len(sh.Keys.CarrierWakeup)-len("}:carrier_wakeup")]))
		share[servers.Master(slot).Addr()]++
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
