package redistest

import (
	"testing"
	"time"

	"github.com/ringback/ringback/internal/testkit"
)

// await polls until there is no complaint, or fails the test with the last one.
func await(tb testing.TB, what string, complaint func() error) {
	tb.Helper()
	if err := within(testkit.MustCome, complaint); err != nil {
		tb.Fatalf("%s: not within %v: %v", what, testkit.MustCome, err)
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
