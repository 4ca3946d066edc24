package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

// healthStep is an exchange that recorded attempts, some time after the one before.
type healthStep struct {
	after             time.Duration
	delivered, failed int64
}

var healthStart = time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)

// healthAfter returns the health after some steps, and when the last one was.
func healthAfter(steps []healthStep) (h *policy.Health, now time.Time) {
	now = healthStart
	for i, s := range steps {
		now = now.Add(s.after)
		failure := policy.Failure{JobID: string(rune('a' + i)), Status: 500}
		h = h.After(now, policy.HealthCount{Delivered: s.delivered, Failed: s.failed}, failure)
	}
	return h, now
}

func TestHealth_State(t *testing.T) {
	for _, c := range []struct {
		name   string
		steps  []healthStep
		later  time.Duration
		wanted policy.HealthState
	}{
		{"nothing failed", []healthStep{{0, 9, 0}}, 0, policy.HealthOK},
		{"two failed, none delivered", []healthStep{{0, 0, 2}}, 0, policy.HealthOK},
		{"three failed, none delivered", []healthStep{{0, 0, 3}}, 0, policy.HealthFailing},
		{
			"three failed slowly",
			[]healthStep{{0, 0, 1}, {50 * time.Minute, 0, 1}, {50 * time.Minute, 0, 1}},
			0,
			policy.HealthFailing,
		},
		{"a delivery came between", []healthStep{{0, 0, 2}, {0, 1, 0}, {0, 0, 1}}, 0, policy.HealthOK},
		{"two of five", []healthStep{{0, 0, 2}, {0, 3, 0}}, 0, policy.HealthOK},
		{"three of six", []healthStep{{0, 0, 2}, {0, 3, 0}, {0, 0, 1}}, 0, policy.HealthFailing},
		{"two of four", []healthStep{{0, 0, 1}, {0, 2, 1}}, 0, policy.HealthOK},
		{"half of five minutes", []healthStep{{0, 0, 3}, {4 * time.Minute, 3, 0}}, 0, policy.HealthFailing},
		{"five minutes ago", []healthStep{{0, 0, 3}, {5 * time.Minute, 3, 0}}, 0, policy.HealthOK},
		{"the window ends", []healthStep{{0, 0, 9}, {0, 1, 0}}, 5 * time.Minute, policy.HealthOK},
		{"recovered", []healthStep{{0, 0, 9}, {0, 10, 0}}, 0, policy.HealthOK},
		{"no attempt for an hour", []healthStep{{0, 0, 9}}, time.Hour, policy.HealthFailing},
		{"no attempt for longer", []healthStep{{0, 0, 9}}, time.Hour + time.Millisecond, policy.HealthUnknown},
		{"no attempt for two days", []healthStep{{0, 0, 9}}, 48*time.Hour + time.Millisecond, policy.HealthOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, now := healthAfter(c.steps)
			require.Equal(t, c.wanted, h.State(now.Add(c.later)))
			require.Equal(t, c.wanted == policy.HealthFailing, h.Failing(now.Add(c.later)))
		})
	}
}

func TestHealth_IsDropped(t *testing.T) {
	for _, c := range []struct {
		name   string
		steps  []healthStep
		wanted bool
	}{
		{"deliveries of less than an hour", []healthStep{{0, 0, 1}, {59 * time.Minute, 1, 0}}, false},
		{"an hour of deliveries", []healthStep{{0, 0, 1}, {59 * time.Minute, 1, 0}, {time.Minute, 1, 0}}, true},
		{"failures in between", []healthStep{{0, 0, 1}, {59 * time.Minute, 0, 1}, {time.Minute, 1, 0}}, false},
		{"two days without attempts", []healthStep{{0, 0, 1}, {48*time.Hour + 1, 1, 0}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := healthAfter(c.steps)
			require.Equal(t, c.wanted, h == nil)
		})
	}
	h, now := healthAfter([]healthStep{{0, 0, 7}, {48*time.Hour + 1, 0, 1}})
	require.Equal(t, &policy.Health{
		Since: now, Attempts: 1, Failed: 1, InRow: 1, Last: now, Minutes: [5]policy.HealthCount{{Failed: 1}},
		Failure: policy.Failure{JobID: "b", At: now, Status: 500},
	}, h, "another record begins")
}

func TestHealth_Since(t *testing.T) {
	h, now := healthAfter([]healthStep{{0, 0, 1}, {time.Minute, 90, 0}, {time.Minute, 0, 5}, {time.Second, 0, 52}})
	require.Equal(t, now.Add(-time.Second), h.Since, "few failed before")
	require.EqualValues(t, 57, h.Failed)
	require.EqualValues(t, 57, h.Attempts)
	require.InDelta(t, 58.0/148, h.Share(now), 1e-9)
	require.InDelta(t, 1, h.Share(now.Add(time.Hour)), 1e-9, "nothing is in the window")

	h, _ = healthAfter([]healthStep{{0, 1, 1}, {time.Minute, 1, 1}, {time.Minute, 1, 1}})
	require.Equal(t, healthStart, h.Since, "half fail all the time")
	require.EqualValues(t, 6, h.Attempts)

	h, now = healthAfter([]healthStep{{0, 0, 1}, {-time.Hour, 0, 1}})
	require.Equal(t, healthStart, h.Last, "the clock was set back")
	require.EqualValues(t, 2, h.Window(now).Failed)
}
