package sqlite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/memory"
)

// Replies to shared tokens are found for at least a minute, and their number is bounded by what comes in three.
func TestSettle_KeepsRepliesToSharedTokensForAMinute(t *testing.T) {
	s, c := openWithClock(t, options(t))
	const perMinute, minutes = 4, 6
	insert(t, s, newJobs("job", perMinute*minutes, 0)...)
	held := claimJobs(t, s, perMinute*minutes)
	require.Len(t, held, perMinute*minutes)
	again := func(i int) error {
		items := []store.Settlement{settlementOf(held[i], deliveredVerdict)}
		errs, _, err := s.Settle(t.Context(), store.SharedToken(make([]byte, 16)).Item(i), items, nil)
		require.NoError(t, err)
		return errs[0]
	}
	for i := range held {
		require.NoError(t, again(i))
		inWriter(t, s, func() { // as after a restart
			s.mem.SharedReplies = memory.NewReplies()
			require.NoError(t, s.loadReplies(t.Context()))
		})
		require.NoError(t, again(max(0, i-perMinute)), "from a minute ago")
		c.pass(time.Minute / perMinute)
		_, err := s.Sweep(t.Context(), store.NewToken(), 100)
		require.NoError(t, err)
		require.LessOrEqual(t, queryValue(t, s, "SELECT count(*) FROM replies"), int64(3*perMinute))
	}
	require.ErrorIs(t, again(0), store.ErrLeaseLost, "after some minutes")
}
