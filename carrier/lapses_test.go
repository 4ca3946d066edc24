package carrier

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

func TestAStoreClockThatJumpsAheadTakesNoLeaseForAMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lapses{margin: 5 * time.Second}
		require.True(t, l.before().IsZero(), "nothing is known at first")
		clock := time.Now().Add(-time.Hour) // the store's own
		l.seen(clock)
		time.Sleep(time.Second)
		clock = clock.Add(time.Second)
		require.False(t, l.held())
		require.WithinDuration(t, clock, l.before(), 2*time.Second)
		l.seen(clock)
		require.False(t, l.held())

		clock = clock.Add(time.Minute)
		require.True(t, l.before().Before(clock), "leases that end after what is plausible stay, even in the move that sees the jump")
		l.seen(clock)
		for range 5 {
			require.True(t, l.held())
			time.Sleep(time.Second)
			clock = clock.Add(time.Second)
			l.seen(clock)
		}
		require.False(t, l.held())
	})
}

func TestAStoreClockThatJumpsBackIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lapses{margin: 5 * time.Second}
		clock := time.Now()
		l.seen(clock)
		l.seen(clock.Add(-time.Hour))
		require.False(t, l.held())
		require.WithinDuration(t, clock.Add(-time.Hour), l.before(), 2*time.Second)
	})
}

func TestASilenceOfOursHoldsLapsesBackForAMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lapses{margin: 5 * time.Second}
		l.seen(time.Now())
		time.Sleep(time.Second)
		require.False(t, l.held())
		time.Sleep(store.LeadershipTTL)
		require.True(t, l.held(), "workers may have been as unable to settle")
		l.seen(time.Now())
		for range 5 {
			require.True(t, l.held())
			time.Sleep(time.Second)
			l.seen(time.Now())
		}
		require.False(t, l.held())
	})
}
