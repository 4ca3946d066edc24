package sched

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

// Were they merged, the store would take a start that was used for one that was not.
func TestRateState_ReturnsGrantsOfDifferentWindowsSeparately(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	long, short := store.Permit{At: at, Slack: time.Second}, store.Permit{At: at, Slack: time.Millisecond}
	r := &rateState{grant: long}
	r.addUnused(short, 2)
	require.Zero(t, r.startsLeft)
	r.giveBack(long, 1)
	r.giveBack(short, 3)
	require.Equal(t, []store.Permit{
		{Starts: 5, At: at, Slack: short.Slack}, {Starts: 1, At: at, Slack: long.Slack},
	}, r.returned)
}
