package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

func TestLimits_LaneOverridesTopic(t *testing.T) {
	slow, fast := policy.Rate{Starts: 1, Per: time.Minute}, policy.Rate{Starts: 100, Per: time.Second}
	for _, c := range []struct {
		name   string
		topic  policy.Topic
		lane   policy.Lane
		wanted policy.Limits
	}{
		{"unset", policy.Topic{}, policy.Lane{}, policy.Limits{Concurrency: 32, Deliver: policy.DeliverPush}},
		{
			"the topic's",
			policy.Topic{LaneConcurrency: 4, LaneRate: slow, Rate: fast, Deliver: policy.DeliverPull},
			policy.Lane{},
			policy.Limits{Concurrency: 4, Rate: slow, Deliver: policy.DeliverPull},
		},
		{
			"the lane's",
			policy.Topic{LaneConcurrency: 4, LaneRate: slow},
			policy.Lane{LaneConcurrency: 64, LaneRate: fast},
			policy.Limits{Concurrency: 64, Rate: fast, Deliver: policy.DeliverPush},
		},
		{
			"one field of the lane's",
			policy.Topic{LaneConcurrency: 4, LaneRate: slow},
			policy.Lane{LaneConcurrency: 1},
			policy.Limits{Concurrency: 1, Rate: slow, Deliver: policy.DeliverPush},
		},
		{
			"an ordered topic",
			policy.Topic{Ordered: true, LaneConcurrency: 4},
			policy.Lane{LaneConcurrency: 8},
			policy.Limits{Ordered: true, Concurrency: 1, Deliver: policy.DeliverPush},
		},
		{"an ordered lane", policy.Topic{LaneConcurrency: 4}, policy.Lane{Ordered: true}, policy.Limits{
			Ordered: true, Concurrency: 1, Deliver: policy.DeliverPush,
		}},
		{"a paused topic", policy.Topic{Paused: true}, policy.Lane{}, policy.Limits{
			Paused: true, Concurrency: 32, Deliver: policy.DeliverPush,
		}},
		{"a paused lane", policy.Topic{}, policy.Lane{Paused: true}, policy.Limits{
			Paused: true, Concurrency: 32, Deliver: policy.DeliverPush,
		}},
	} {
		limits := c.lane.Limits().Over(c.topic.Limits().Over(policy.Builtin().Limits()))
		require.Equal(t, c.topic.WithDefaults(policy.Builtin()).Limits().KeepDead, limits.KeepDead, c.name)
		limits.KeepDelivered, limits.KeepDead, limits.IDWindow = policy.Retention{}, policy.Retention{}, nil
		require.Equal(t, c.wanted, limits, c.name)
	}
}

func TestLimits_TopicOverridesDefaults(t *testing.T) {
	topic := policy.Topic{
		LaneConcurrency: 4, KeepDead: policy.Retention{Max: new(int64(0))}, IDWindow: new(time.Duration(0)),
	}
	require.Equal(t, topic.WithDefaults(policy.Builtin()).Limits(), topic.Limits().Over(policy.Builtin().Limits()))
}
