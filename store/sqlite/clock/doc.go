// Package clock reads the wall clock and the monotonic clock together, converts between them in whole milliseconds, and
// follows the wall clock being set.
//
// Moments are integers: wall-clock times in Unix milliseconds, monotonic times in nanoseconds. What must not be early
// is rounded up. The package knows jobs by number only.
package clock
