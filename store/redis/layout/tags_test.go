package layout

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHashSlot_FollowsTheClusterSpecification(t *testing.T) {
	// The check value of CRC-16/XMODEM, and of the specification's appendix.
	require.Equal(t, 0x31c3%hashSlots, hashSlot("123456789"))
	require.Zero(t, hashSlot(""))
}

func TestTags_SpreadEvenlyOverTheServersOfACluster(t *testing.T) {
	for _, n := range []int{1, 2, 3, 16, 64, 256} {
		all := Tags("rb", n)
		for servers := 1; servers <= n; servers++ {
			share := make([]int, servers)
			for _, tag := range all {
				share[hashSlot(tag)*servers/hashSlots]++
			}
			for _, shards := range share {
				require.InDelta(t, float64(n)/float64(servers), shards, 1.5, "%d shards over %d servers", n, servers)
			}
		}
	}
}

func TestTags_NeverChange(t *testing.T) {
	// Data under a tag cannot be found by a program that computes another one.
	require.Equal(t, strings.Fields("rb:0.0 rb:1.3 rb:2.41 rb:3.59 rb:4.11 rb:5.168 rb:6.22 rb:7.29 rb:8.41 rb:9.59 "+
		"rb:10.79 "+
		"rb:11.61 rb:12.58 rb:13.40 rb:14.1 rb:15.2"), Tags("rb", ClusterShards))
}
