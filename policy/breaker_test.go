package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

// Statuses that count towards a breaker, and those that request a lower rate. For error classes see their table.
func TestResult_UnavailableAndThrottled(t *testing.T) {
	away := map[int]bool{502: true, 503: true, 504: true, 598: true, 599: true}
	for ofCDN := 520; ofCDN <= 530; ofCDN++ {
		away[ofCDN] = true
	}
	busy := map[int]bool{429: true, 503: true}
	for status := 100; status <= 999; status++ {
		result := policy.Result{Status: status}
		require.Equal(t, away[status], result.Unavailable(), status)
		require.Equal(t, busy[status], result.Throttled(), status)
	}
	cut := policy.Result{Status: 503, Class: policy.ClassReset}
	require.True(t, cut.Unavailable())
	require.False(t, cut.Throttled(), "an answer that broke off asks for nothing")
}

func TestBacklog_Exceeded(t *testing.T) {
	for _, c := range []struct {
		name    string
		backlog policy.Backlog
		oldest  time.Duration
		pending int64
		raised  bool
	}{
		{"nothing is watched", policy.Backlog{}, 1000 * time.Hour, 1 << 40, false},
		{"younger", policy.Backlog{OlderThan: time.Minute}, time.Minute - time.Millisecond, 1 << 40, false},
		{"as old", policy.Backlog{OlderThan: time.Minute}, time.Minute, 0, false},
		{"older", policy.Backlog{OlderThan: time.Minute}, time.Minute + time.Millisecond, 0, true},
		{"as many", policy.Backlog{MoreThan: 10}, 1000 * time.Hour, 10, false},
		{"more", policy.Backlog{MoreThan: 10}, 0, 11, true},
		{"either", policy.Backlog{OlderThan: time.Minute, MoreThan: 10}, 0, 11, true},
		{"or", policy.Backlog{OlderThan: time.Minute, MoreThan: 10}, time.Hour, 1, true},
		{"neither", policy.Backlog{OlderThan: time.Minute, MoreThan: 10}, time.Second, 1, false},
		{"nothing is due", policy.Backlog{OlderThan: time.Minute, MoreThan: 10}, 0, 0, false},
	} {
		require.Equal(t, c.raised, c.backlog.Exceeded(c.oldest, c.pending), c.name)
	}
}
