package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

func TestLane_IsZero(t *testing.T) {
	require.True(t, policy.Lane{}.IsZero())
	require.True(t, policy.Lane{Headers: map[string][]string{}, Secrets: []policy.Secret{}}.IsZero())
	for name, lane := range map[string]policy.Lane{
		"url":         {URL: "http://lane.example/"},
		"headers":     {Headers: map[string][]string{"X-A": {"1"}}},
		"secrets":     {Secrets: []policy.Secret{{ID: "s1"}}},
		"concurrency": {LaneConcurrency: 1},
		"rate":        {LaneRate: policy.Rate{Starts: 1, Per: time.Second}},
		"paused":      {Paused: true},
	} {
		require.False(t, lane.IsZero(), name)
	}
}

func TestLimits_LaneOverridesTopic(t *testing.T) {
	slow, fast := policy.Rate{Starts: 1, Per: time.Minute}, policy.Rate{Starts: 100, Per: time.Second}
	for _, c := range []struct {
		name   string
		topic  policy.Topic
		lane   policy.Lane
		wanted policy.Limits
	}{
		{"unset", policy.Topic{}, policy.Lane{}, policy.Limits{Concurrency: 32}},
		{
			"the topic's",
			policy.Topic{LaneConcurrency: 4, LaneRate: slow, Rate: fast},
			policy.Lane{},
			policy.Limits{Concurrency: 4, Rate: slow},
		},
		{
			"the lane's",
			policy.Topic{LaneConcurrency: 4, LaneRate: slow},
			policy.Lane{LaneConcurrency: 64, LaneRate: fast},
			policy.Limits{Concurrency: 64, Rate: fast},
		},
		{
			"one field of the lane's",
			policy.Topic{LaneConcurrency: 4, LaneRate: slow},
			policy.Lane{LaneConcurrency: 1},
			policy.Limits{Concurrency: 1, Rate: slow},
		},
		{"a paused topic", policy.Topic{Paused: true}, policy.Lane{}, policy.Limits{Paused: true, Concurrency: 32}},
		{"a paused lane", policy.Topic{}, policy.Lane{Paused: true}, policy.Limits{Paused: true, Concurrency: 32}},
	} {
		require.Equal(t, c.wanted, c.topic.WithDefaults(policy.Builtin()).Limits(c.lane), c.name)
	}
}

func TestRate_LimitedNeedsStartsAndPer(t *testing.T) {
	require.False(t, policy.Rate{}.Limited())
	require.False(t, policy.Rate{Starts: 1}.Limited())
	require.False(t, policy.Rate{Per: time.Second}.Limited())
	require.True(t, policy.Rate{Starts: 1, Per: time.Second}.Limited())
}
