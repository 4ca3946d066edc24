package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// queuedThrottles returns how many throttles the carrier is to check.
func queuedThrottles(t *testing.T, s *Store) int64 {
	t.Helper()
	n, err := s.Client.ZCard(t.Context(), s.shards[0].Keys.ThrottleQueue).Result()
	require.NoError(t, err)
	return n
}

func TestCarry_ForgetsRemovedThrottles(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		sh := s.shards[0]
		deliverWith(t, s, "held", store.LaneChange{Cooldown: time.Hour})
		number, err := s.Client.HGet(t.Context(), sh.Keys.Queues, lane.String()).Result()
		require.NoError(t, err)
		require.NoError(t, s.Client.ZAdd(t.Context(), sh.Keys.ThrottleQueue, redis.Z{Score: 1, Member: number}).Err())
		for i := range 3 * carriedQueues { // of queues that do not exist, and checked first
			require.NoError(t,
				s.Client.ZAdd(t.Context(), sh.Keys.ThrottleQueue, redis.Z{Member: fmt.Sprint(9000 + i)}).Err())
		}
		carry := func(rounds int) (next time.Duration) {
			for range rounds {
				carried, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
				require.NoError(t, err)
				next = carried.Next
			}
			return next
		}
		require.Zero(t, carry(3), "more throttles are to be checked")
		require.EqualValues(t, 1, queuedThrottles(t, s))
		require.Negative(t, carry(1))
		require.EqualValues(t, 1, queuedThrottles(t, s), "a throttle that is not over")
		require.NoError(t, s.Client.HDel(t.Context(), sh.Keys.Throttles, number).Err())
		require.Negative(t, carry(1))
		require.Zero(t, queuedThrottles(t, s), "a queue without a throttle")
	})
}

func TestCarry_LeavesFurtherThrottlesToTheNextRound(t *testing.T) {
	clock := newClock(t)
	s := open(t, clock.options())
	const lanes = 6
	for i := range lanes {
		e := entry(fmt.Sprint("job-", i))
		e.Lane = fmt.Sprint("lane-", i)
		insert(t, s, e)
		request := wants(1)
		request.Queues[0].Queue = e.Queue
		claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
		require.NoError(t, err)
		item := settlement(claimed.Jobs[0], policy.Verdict{Kind: policy.Delivered}, 200)
		item.LaneChange = store.LaneChange{Cooldown: time.Minute}
		settle(t, s, item)
	}
	require.EqualValues(t, lanes, queuedThrottles(t, s))
	carry := func(token store.Token) time.Duration {
		carried, err := s.Shards()[0].Carry(t.Context(), token, store.CarryOptions{Queues: 3})
		require.NoError(t, err)
		return carried.Next
	}
	require.Negative(t, carry(store.NewToken()), "no throttle is over")
	clock.pass(time.Minute)
	token := store.NewToken()
	require.Zero(t, carry(token))
	require.EqualValues(t, lanes-3, queuedThrottles(t, s))
	require.Zero(t, carry(token), "a repeated round checks nothing")
	require.EqualValues(t, lanes-3, queuedThrottles(t, s))
	require.Negative(t, carry(store.NewToken()))
	require.Zero(t, queuedThrottles(t, s))
}

// A queue without a name cannot be processed. Its entries must not keep the carrier busy.
func TestCarry_RemovesQueuesWithoutANameFromTheAgenda(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		sh := s.shards[0]
		for _, key := range []string{sh.Keys.Agenda, sh.Keys.Deferred} {
			require.NoError(t, s.Client.ZAdd(t.Context(), key, redis.Z{Score: 1, Member: "9000"}).Err())
		}
		carried, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
		require.Negative(t, carried.Next)
		require.Zero(t, s.Client.Exists(t.Context(), sh.Keys.Agenda, sh.Keys.Deferred).Val())
	})
}
