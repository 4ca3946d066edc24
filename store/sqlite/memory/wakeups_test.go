package memory

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// newQueue returns a queue of a topic with its own limits.
func newQueue(lane string, deliver policy.Deliver) *Queue {
	topic := NewTopic(1, TopicName{Namespace: "n", Name: "t"}, &policy.Limits{Deliver: deliver})
	return &Queue{Name: job.Queue{Namespace: "n", Topic: "t", Lane: lane}, Topic: topic, QueueNumbers: QueueNumbers{Waiting: 1}}
}

func TestWakeups_MoveAQueueToItsNewGroup(t *testing.T) {
	b, q := NewWakeups(), newQueue("a", policy.DeliverPush)
	b.Notify([]*Queue{q}, false)
	q.Topic.Limits.Deliver = policy.DeliverPull
	b.Notify([]*Queue{q}, false)
	groups := []string{store.GroupPush}
	taken, _, _ := b.Take(groups, 10)
	require.Empty(t, taken)
	groups = append(groups, "handler:n/t", "pull:n/t")
	taken, _, _ = b.Take(groups, 10)
	require.Equal(t, []job.Queue{q.Name}, taken)
	taken, _, _ = b.Take(groups, 10)
	require.Empty(t, taken)
}

func TestWakeups_DropQueuesWithoutJobsThatNobodyTakes(t *testing.T) {
	b := NewWakeups()
	for i := range 10_000 {
		q := newQueue(fmt.Sprint(i), policy.DeliverPull)
		b.Notify([]*Queue{q}, false)
		q.Waiting = 0
	}
	require.Less(t, len(b.queues["pull:n/t"]), 100)
	taken, _, _ := b.Take([]string{"pull:n/t"}, 1000)
	require.NotEmpty(t, taken)
	require.Empty(t, b.queues, "nothing is left of a topic that may be gone")
}
