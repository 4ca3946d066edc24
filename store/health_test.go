package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestParseHealth_ReadsWhatFormatHealthWrites(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123e6, time.UTC)
	h := &policy.Health{
		Since: at, Attempts: 57, Failed: 56, InRow: 3, Last: at.Add(time.Hour),
		Minutes: [5]policy.HealthCount{{Delivered: 1, Failed: 2}, {}, {Failed: 4}, {}, {Delivered: 9}},
		Failure: policy.Failure{JobID: "a:b", At: at.Add(time.Minute), Status: 500},
	}
	require.Equal(t, h, store.ParseHealth(store.FormatHealth(h)))
	h.Failure.Status, h.Failure.Class = 0, policy.ClassRefused
	require.Equal(t, h, store.ParseHealth(store.FormatHealth(h)))
	for _, none := range []string{"", "1 2", store.FormatHealth(h) + " more", "x" + store.FormatHealth(h)} {
		require.Nil(t, store.ParseHealth(none), none)
	}
}

func TestHealthChange_NeedsADeliveryForARecovery(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	failing := (*policy.Health)(nil).After(now, policy.HealthCount{Delivered: 2, Failed: 3}, policy.Failure{JobID: "a"})
	later := now.Add(10 * time.Minute)
	for count, fails := range map[policy.HealthCount]bool{{Failed: 1}: true, {Delivered: 1}: false} {
		change := store.HealthChange{Before: failing, After: failing.After(later, count, policy.Failure{JobID: "b"})}
		before, after := change.Failing()
		require.True(t, before)
		require.Equal(t, fails, after)
	}
}
