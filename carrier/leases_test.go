package carrier

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

func TestClock_JumpAheadExpiresNoLeaseForAMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l leaseExpiry
		require.True(t, l.plausibleNow().IsZero(), "nothing is known at first")
		clock := time.Now().Add(-time.Hour) // the store's own
		l.observe(clock)
		time.Sleep(time.Second)
		clock = clock.Add(time.Second)
		require.False(t, l.isPaused())
		require.WithinDuration(t, clock, l.plausibleNow(), 2*time.Second)
		l.observe(clock)
		require.False(t, l.isPaused())

		clock = clock.Add(time.Minute)
		require.True(t, l.plausibleNow().Before(clock),
			"leases that end after the plausible time stay, also in the round of the jump")
		l.observe(clock)
		for range 5 {
			require.True(t, l.isPaused())
			time.Sleep(time.Second)
			clock = clock.Add(time.Second)
			l.observe(clock)
		}
		require.False(t, l.isPaused())
	})
}

func TestClock_JumpBackIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l leaseExpiry
		clock := time.Now()
		l.observe(clock)
		l.observe(clock.Add(-time.Hour))
		require.False(t, l.isPaused())
		require.WithinDuration(t, clock.Add(-time.Hour), l.plausibleNow(), 2*time.Second)
	})
}

func TestLeases_WaitAMarginAfterAStalledProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l leaseExpiry
		l.observe(time.Now())
		time.Sleep(time.Second)
		require.False(t, l.isPaused())
		time.Sleep(store.LeadershipTTL)
		require.True(t, l.isPaused(), "workers may have been as unable to settle")
		l.observe(time.Now())
		for range 5 {
			require.True(t, l.isPaused())
			time.Sleep(time.Second)
			l.observe(time.Now())
		}
		require.False(t, l.isPaused())
	})
}
