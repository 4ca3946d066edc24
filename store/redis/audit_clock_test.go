package redis

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

// deadlineOf returns the deadline of a claimed job of the queue 1.
func deadlineOf(t *testing.T, s *Store, id string) time.Time {
	t.Helper()
	at, err := s.Client.ZScore(t.Context(), s.shards[0].Keys.Claimed("1"), id).Result()
	require.NoError(t, err)
	return time.UnixMilli(int64(at)).UTC()
}

// A clock that was set back makes leases seem to be too long until a carrier has moved their deadlines.
func TestAudit_KeepsLeasesAfterTheClockWasSetBack(t *testing.T) {
	clock := newClock(t)
	s := open(t, clock.options())
	insert(t, s, entry("a"))
	require.Len(t, claimAll(t, s, 1).Jobs, 1)
	carryAll(t, s)
	deadline := clock.now().Add(store.MaxLease)
	require.NoError(t, s.Client.ZAdd(t.Context(), s.shards[0].Keys.Claimed("1"),
		redis.Z{Score: float64(deadline.UnixMilli()), Member: "a"}).Err())
	clock.step(-3 * time.Hour)
	for _, repair := range []bool{false, true} {
		require.NotContains(t, kindsOf(audit(t, s, repair)), store.RepairLease)
	}
	require.Equal(t, deadline, deadlineOf(t, s, "a"))

	endless := clock.now().Add(1000 * time.Hour)
	require.NoError(t, s.Client.ZAdd(t.Context(), s.shards[0].Keys.Claimed("1"),
		redis.Z{Score: float64(endless.UnixMilli()), Member: "a"}).Err())
	require.Contains(t, kindsOf(audit(t, s, true)), store.RepairLease)
	require.True(t, deadlineOf(t, s, "a").Before(deadline))
}

// Without a carrier nobody moves deadlines.
func TestAudit_RepairsNothingWhileTimesAreNotMoved(t *testing.T) {
	clock := newClock(t)
	s := open(t, clock.options())
	insert(t, s, entry("a"))
	require.NoError(t, s.Client.ZAdd(t.Context(), s.shards[0].Keys.StaleAgenda, redis.Z{Score: 1, Member: "1"}).Err())
	var err error
	pauses := 0
	for page, failed := range s.shards[0].Audit(t.Context(), true) {
		require.Empty(t, page.Faults)
		err = failed
		pauses++
	}
	require.ErrorContains(t, err, "while a process with the role worker runs")
	require.Greater(t, pauses, 10)
	for _, failed := range s.shards[0].Audit(t.Context(), false) {
		require.NoError(t, failed, "looking goes on")
	}
}
