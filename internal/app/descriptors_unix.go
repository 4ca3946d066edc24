//go:build unix

package app

import (
	"math"
	"syscall"
)

// descriptorLimit returns the soft limit of open files, which the Go runtime raises to the hard limit at start; 0:
// unknown.
func descriptorLimit() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur, math.MaxInt32))
}
