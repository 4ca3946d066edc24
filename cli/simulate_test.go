package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

func TestAttempts_AreWhatPolicyDecides(t *testing.T) {
	all := simulateAttempts(policy.Builtin().Terms(policy.Terms{}), 0, 0)
	require.Len(t, all, len(policy.DefaultLadder())+2)
	require.Equal(t, policy.DefaultLadder().Span(len(policy.DefaultLadder())), all[len(all)-1].earliest)
	require.Equal(t, simulatedAttempt{
		attempt: 2, wait: 15 * time.Second, earliest: 15 * time.Second,
		latest: 16500 * time.Millisecond,
	}, all[1], "a jitter of a tenth")
}
