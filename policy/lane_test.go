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

func TestRate_LimitedNeedsStartsAndPer(t *testing.T) {
	require.False(t, policy.Rate{}.Limited())
	require.False(t, policy.Rate{Starts: 1}.Limited())
	require.False(t, policy.Rate{Per: time.Second}.Limited())
	require.True(t, policy.Rate{Starts: 1, Per: time.Second}.Limited())
}
