package capacity

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAllowance_LeavesRoomForLaterHolders(t *testing.T) {
	for weight, want := range map[int]struct{ alone, ofNine, afterNine, afterFifty int }{
		1:               {783, 163, 249, 36},
		namespaceWeight: {1536, 206, 27, 0},
		AttemptsWeight:  {1875, 221, 2, 0},
	} {
		all := 2048
		require.Equal(t, want.alone, Allowance(0, all, all, weight))

		used, free := make([]int, 9), all // side by side
		for i := 0; Allowance(used[i%9], free, all, weight) > 0; i++ {
			used[i%9]++
			free--
		}
		require.InDelta(t, want.ofNine, used[8], 1)

		free = all // one after another, each as much as it may have
		for k := 1; k <= 50; k++ {
			free -= Allowance(0, free, all, weight)
			if k == 9 {
				require.InDelta(t, want.afterNine, free, 1)
			}
		}
		require.InDelta(t, want.afterFifty, free, 1)
	}
}

func TestAllowance_OfOneWorker(t *testing.T) {
	require.Equal(t, 1, Allowance(0, 1, 2048, 1), "who has none may have the last one")
	require.Equal(t, 0, Allowance(1, 1, 2048, 1))
	require.Equal(t, 0, Allowance(0, 0, 2048, AttemptsWeight))
	require.Equal(t, 0, Allowance(5, -3, 2048, AttemptsWeight))
	for all := 1; all <= 11; all++ {
		require.Equal(t, all, Allowance(0, all, all, AttemptsWeight), "a small process is nobody's but its holder's")
	}
}
