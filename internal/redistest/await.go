package redistest

import (
	"testing"
	"time"
)

// awaitTimeout is how long servers may take to agree with each other. It is far beyond what they need: a failover that
// fails once, for a vote that was split, is tried again after ten seconds.
const awaitTimeout = 60 * time.Second

// await asks until there is nothing left to complain of, or the test fails with the last complaint.
func await(tb testing.TB, what string, complaint func() error) {
	tb.Helper()
	if err := within(awaitTimeout, complaint); err != nil {
		tb.Fatalf("%s: not within %v: %v", what, awaitTimeout, err)
	}
}

// within returns the last complaint when there still is one after some time.
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
