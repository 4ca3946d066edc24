package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// putLimit sets the concurrency of the test lane.
func putLimit(t *testing.T, s *Store, limit int) error {
	t.Helper()
	_, err := store.PutLane(t.Context(), s.Shards()[0], store.NewToken(),
		store.Lane{Queue: lane, Settings: policy.Lane{LaneConcurrency: limit}})
	return err
}

// claimAhead claims jobs for an owner, up to ahead beyond the limit.
func claimAhead(t *testing.T, s *Store, owner store.LeaseOwner, ahead int) []store.ClaimedJob {
	t.Helper()
	request := wants(10)
	request.Queues[0].Ahead = ahead
	claimed, err := s.Shards()[0].Claim(t.Context(), owner.NewToken(), request)
	require.NoError(t, err)
	return claimed.Jobs
}

func owners(t *testing.T, s *Store) map[string]string {
	t.Helper()
	all, err := s.Client.HGetAll(t.Context(), s.shards[0].Keys.Owners).Result()
	require.NoError(t, err)
	return all
}

func TestOwners_NamesAnOwnerOfMoreThanTheLimit(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		require.NoError(t, putLimit(t, s, 1))
		for i := range 9 {
			insert(t, s, entry(fmt.Sprint(i)))
		}
		one := store.NewLeaseOwner()
		jobs := claimAhead(t, s, one, 0)
		require.Len(t, jobs, 1)
		require.Empty(t, owners(t, s))
		jobs = append(jobs, claimAhead(t, s, one, 1)...)
		require.Len(t, jobs, 2)
		require.Equal(t, map[string]string{"1": string(one)}, owners(t, s))
		for _, h := range jobs {
			settle(t, s, settlement(h, policy.Verdict{Kind: policy.Delivered}, 200))
		}
		require.Equal(t, map[string]string{"1": string(one)}, owners(t, s), "true until another claims")
		require.Len(t, claimAll(t, s, 1).Jobs, 1)
		require.Empty(t, owners(t, s))
	})
}

// Until the check, a lease of another process may be missing in claimed.
func TestRepair_RemovesTheOwnerOfAQueueWhoseLeaseItRestores(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		require.NoError(t, putLimit(t, s, 1))
		for i := range 9 {
			insert(t, s, entry(fmt.Sprint(i)))
		}
		lost := claimAll(t, s, 1).Jobs[0]
		claimed := s.shards[0].Keys.Claimed("1")
		require.NoError(t, s.Client.ZRem(t.Context(), claimed, lost.ID).Err())
		one := store.NewLeaseOwner()
		jobs := claimAhead(t, s, one, 1)
		require.Len(t, jobs, 2)
		requireRepair(t, s)
		require.Empty(t, owners(t, s))
		settle(t, s, settlement(jobs[0], policy.Verdict{Kind: policy.Delivered}, 200))
		require.Empty(t, claimAhead(t, s, one, 9))
		settle(t, s, settlement(lost, policy.Verdict{Kind: policy.Delivered}, 200))
		require.Len(t, claimAhead(t, s, one, 1), 1)
		require.Equal(t, map[string]string{"1": string(one)}, owners(t, s))
	})
}

func TestForget_RemovesTheOwnerOfALane(t *testing.T) {
	clock := newClock(t)
	o := clock.options()
	o.Limits = policy.Limits{Concurrency: 1}
	s := open(t, o)
	repairAll(t, s, 0)
	insert(t, s, entry("a"), entry("b"))
	jobs := claimAhead(t, s, store.NewLeaseOwner(), 1)
	require.Len(t, jobs, 2)
	require.Len(t, owners(t, s), 1)
	for _, h := range jobs {
		settle(t, s, settlement(h, policy.Verdict{Kind: policy.Delivered}, 200))
	}
	clock.pass(25 * time.Hour)
	sweepAll(t, s)
	sweepAll(t, s)
	require.Empty(t, numberedLanes(t, s))
	require.Empty(t, owners(t, s))
}
