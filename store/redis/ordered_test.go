package redis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// putTopic writes the policy of the test queue's topic.
func putTopic(t *testing.T, s *Store, p policy.Topic) {
	t.Helper()
	_, err := store.PutTopic(t.Context(), s, store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: p})
	require.NoError(t, err)
}

// deliverInTurn delivers jobs of the test queue, which must come one at a time in this order.
func deliverInTurn(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		claimed := claimAll(t, s, 10)
		require.Len(t, claimed.Jobs, 1)
		require.Equal(t, id, claimed.Jobs[0].ID)
		settle(t, s, settlement(claimed.Jobs[0], policy.Verdict{Kind: policy.Delivered}, 200))
	}
}

func TestOrdered_ALostOrderIsMadeAgain(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		keys := s.shards[0].Keys
		putTopic(t, s, policy.Topic{Ordered: true})
		insert(t, s, entry("c"), entry("b"), entry("a"), entry("d"), entry("e"))
		require.Empty(t, requireRepair(t, s), "it is intact")

		require.EqualValues(t, 1, s.Client.ZRem(t.Context(), keys.OrderedJobs("1"), "c").Val())
		found := requireRepair(t, s)
		require.Equal(t, map[store.RepairKind]int{store.RepairOrder: 1}, found)
		carryAll(t, s)
		deliverInTurn(t, s, "c")

		require.EqualValues(t, 1, s.Client.Del(t.Context(), keys.OrderedJobs("1")).Val())
		require.Empty(t, claimAll(t, s, 10).Jobs, "there may be one before those in due")
		carryAll(t, s)
		deliverInTurn(t, s, "b", "a")

		require.EqualValues(t, 1, s.Client.ZRem(t.Context(), keys.Due("1"), "d").Val())
		require.NoError(t, s.Client.HDel(t.Context(), keys.Jobs, "d").Err())
		deliverInTurn(t, s, "e")
		require.Empty(t, s.Client.ZRange(t.Context(), keys.OrderedJobs("1"), 0, -1).Val(),
			"nothing is left of jobs that ended or were lost")
	})
}

func TestOrdered_NothingIsLeftOfTheOrderOfAQueueThatIsNoLonger(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		keys := s.shards[0].Keys
		putTopic(t, s, policy.Topic{Ordered: true})
		insert(t, s, entry("b"), entry("a"))
		require.Equal(t, "-", s.Client.HGet(t.Context(), keys.Ordered, "1").Val())
		putTopic(t, s, policy.Topic{})
		require.Len(t, claimAll(t, s, 10).Jobs, 2)
		require.Zero(t, s.Client.Exists(t.Context(), keys.OrderedJobs("1")).Val())
		require.False(t, s.Client.HExists(t.Context(), keys.Ordered, "1").Val())
	})
}
