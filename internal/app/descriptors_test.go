package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/pool"
)

func TestPlanDescriptors_KeepsSomeForDeliveries(t *testing.T) {
	for _, c := range []struct {
		limit    int
		delivers bool
		api      int
		waiting  int
	}{
		{0, true, 4096, 1778},
		{64, true, 16, 8},
		{512, true, 128, 64},
		{512, false, 384, 192},
		{1024, true, 256, 128},
		{65536, true, 4096, 1778},
		{1 << 30, true, 4096, 1778},
	} {
		p := planDescriptors(c.limit, 1, c.delivers)
		require.Equal(t, c.api, p.api, "%+v", c)
		require.Equal(t, c.waiting, p.waiting, "%+v", c)
		require.Positive(t, p.idle)
		if c.limit >= 512 && c.delivers {
			require.GreaterOrEqual(t, p.deliveries, c.limit/2)
			require.LessOrEqual(t, p.api+p.api/8+p.deliveries+storeDescriptors, c.limit)
		}
	}
	require.GreaterOrEqual(t, planDescriptors(2*pool.DefaultWorkers, 1, true).deliveries, pool.DefaultWorkers)
	require.Equal(t, planDescriptors(4096, 1, true).deliveries-15*storeDescriptors,
		planDescriptors(4096, MaxStores, true).deliveries)
}
