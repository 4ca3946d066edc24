package memory

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// newQueue returns a queue of a topic with its own limits.
func newQueue(lane string, deliver policy.Deliver) *Queue {
	topic := NewTopic(1, TopicName{Namespace: "n", Name: "t"}, &policy.Limits{Deliver: deliver})
	return &Queue{
		Name: job.Queue{Namespace: "n", Topic: "t", Lane: lane}, Topic: topic,
		QueueNumbers: QueueNumbers{Waiting: 1},
	}
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

func TestWakeups_KeepNoGroupsWithoutQueues(t *testing.T) {
	b, taken, moved, idle := NewWakeups(), newQueue("a", policy.DeliverPull), newQueue("b", policy.DeliverHandler),
		newQueue("c", policy.DeliverPull)
	b.Notify([]*Queue{taken}, false)
	b.Take([]string{"pull:n/t"}, 1)
	require.Empty(t, b.queues)
	b.Notify([]*Queue{moved, idle}, false)
	moved.Topic.Limits.Deliver = policy.DeliverPull
	b.Notify([]*Queue{moved}, false)
	require.NotContains(t, b.queues, "handler:n/t")
	idle.Waiting = 0
	b.DropIdle()
	require.Equal(t, map[string][]*Queue{"pull:n/t": {moved}}, b.queues)
	moved.Waiting, idle.Waiting = 0, 1
	b.DropIdle()
	require.Empty(t, b.queues)
	b.Notify([]*Queue{idle}, false)
	found, _, _ := b.Take([]string{"pull:n/t"}, 10)
	require.Equal(t, []job.Queue{idle.Name}, found, "a queue that has jobs again")
}
