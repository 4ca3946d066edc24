package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// scattered are one job each of so many lanes, all due at once, and the lanes in that order. Neither names nor anything
// else but the order of registration tells it.
func scattered(n int, delay time.Duration) (entries []store.NewJob, lanes []string) {
	for i := range n {
		e := inLane(fmt.Sprintf("lane-%03d", i*37%n), fmt.Sprintf("job-%d", i), delay)
		entries, lanes = append(entries, e), append(lanes, e.Lane)
	}
	return entries, lanes
}

func lanesHeard(t *testing.T, s *Store) (lanes []string) {
	t.Helper()
	for _, q := range heard(t, s) {
		lanes = append(lanes, q.Lane)
	}
	return lanes
}

func TestWakeups_NameLanesOfAResumedTopicInTheOrderOfTheirFirstJobs(t *testing.T) {
	s, _ := clocked(t, options(t))
	topic := store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Paused: true}}
	_, err := store.PutTopic(t.Context(), s, topic)
	require.NoError(t, err)
	entries, lanes := scattered(200, 0)
	insert(t, s, entries...)
	require.Empty(t, lanesHeard(t, s))

	topic.Policy.Paused = false
	_, err = store.PutTopic(t.Context(), s, topic)
	require.NoError(t, err)
	require.Equal(t, lanes, lanesHeard(t, s))
}

func TestWakeups_NameLanesThatComeDueTogetherInTheOrderOfTheirFirstJobs(t *testing.T) {
	s, c := clocked(t, options(t))
	entries, lanes := scattered(200, time.Second)
	insert(t, s, entries...)
	c.pass(time.Second)
	var rung []string
	for range 20 {
		_, err := s.Carry(t.Context(), store.NewToken(), store.CarryOptions{Queues: 16})
		require.NoError(t, err)
		rung = append(rung, lanesHeard(t, s)...)
	}
	require.Equal(t, lanes, rung)
}
