// This part of the package tells tests how much to do, and how long to wait. make test shows each promise once, on the
// engines that could differ; make test-all, for releases, repeats it on every engine and with larger numbers.

package testkit

import "time"

// Of returns some in make test and all in make test-all: engines, rounds, jobs.
func Of[T any](some, all T) T {
	if All {
		return all
	}
	return some
}

// MustCome bounds each wait for something that must come. Only a fault takes as long, no machine does.
const MustCome = 5 * time.Minute
