package redistest

import (
	"testing"
	"time"
)

// awaitTimeout bounds a wait for servers to agree. It is far longer than they need: an election with a split vote is
// repeated after ten seconds by sentinels and after twenty in a cluster, and more slowly on a busy machine.
const awaitTimeout = 5 * time.Minute

// await polls until there is no complaint, or fails the test with the last one.
func await(tb testing.TB, what string, complaint func() error) {
	tb.Helper()
	if err := within(awaitTimeout, complaint); err != nil {
		tb.Fatalf("%s: not within %v: %v", what, awaitTimeout, err)
	}
}

// within polls for a while and returns the last complaint, if any.
func within(limit time.Duration, complaint func() error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); ; <-tick.C {
		err := complaint()
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
