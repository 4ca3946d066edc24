package sqlite

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// newScatteredJobs returns a job for each of n lanes, due at the same time, and the lanes in the order of registration,
// which is not the order of their names.
func newScatteredJobs(n int, delay time.Duration) (entries []store.NewJob, lanes []string) {
	for i := range n {
		e := newJobInLane(fmt.Sprintf("lane-%03d", i*37%n), fmt.Sprintf("job-%d", i), delay)
		entries, lanes = append(entries, e), append(lanes, e.Lane)
	}
	return entries, lanes
}

func takeWakeupLanes(t *testing.T, s *Store) (lanes []string) {
	t.Helper()
	for _, q := range takeWakeups(t, s) {
		lanes = append(lanes, q.Lane)
	}
	return lanes
}

func TestWakeups_NameLanesOfAResumedTopicInTheOrderOfTheirFirstJobs(t *testing.T) {
	s, _ := openWithClock(t, options(t))
	topic := store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Paused: true}}
	_, err := store.PutTopic(t.Context(), s, topic)
	require.NoError(t, err)
	entries, lanes := newScatteredJobs(200, 0)
	insert(t, s, entries...)
	require.Empty(t, takeWakeupLanes(t, s))

	topic.Policy.Paused = false
	_, err = store.PutTopic(t.Context(), s, topic)
	require.NoError(t, err)
	require.Equal(t, lanes, takeWakeupLanes(t, s))
}

func TestWakeups_NameLanesThatComeDueTogetherInTheOrderOfTheirFirstJobs(t *testing.T) {
	s, c := openWithClock(t, options(t))
	entries, lanes := newScatteredJobs(200, time.Second)
	insert(t, s, entries...)
	c.pass(time.Second)
	var notified []string
	for range 20 {
		_, err := s.Carry(t.Context(), store.NewToken(), store.CarryOptions{Queues: 16})
		require.NoError(t, err)
		notified = append(notified, takeWakeupLanes(t, s)...)
	}
	require.Equal(t, lanes, notified)
}

func TestOrdered_FindsAJobThatMovesWhileTheOthersArePutInOrder(t *testing.T) {
	s, clock := openWithClock(t, options(t))
	old := newJob("old", 0)
	old.MaxAge = time.Second
	insert(t, s, old)
	settle(t, s, settlementOf(claimJobs(t, s, 1)[0], policy.Verdict{Kind: policy.Again, Wait: 3 * time.Hour}))
	// more than are put in order at a time
	for part := range slices.Chunk(newJobs("later", 1500, 2*time.Hour), store.MaxBatch) {
		insert(t, s, part...)
	}
	clock.pass(2 * time.Second)
	_, err := store.PutTopic(t.Context(), s,
		store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Ordered: true}})
	require.NoError(t, err)
	expired, err := s.ClaimExpired(t.Context(), store.NewToken(),
		store.ClaimExpiredRequest{Max: 10, MaxBytes: 1 << 20, Lease: time.Minute})
	require.NoError(t, err)
	require.Len(t, expired, 1)
	// its topic has no such max_age any more
	settle(t, s, settlementOf(expired[0], policy.Verdict{Kind: policy.Released}))
	for range 5 {
		clock.pass(10 * time.Millisecond)
		carry(t, s)
	}
	claimed := claimJobs(t, s, 1)
	require.Equal(t, "old", claimed[0].ID)
}
