//go:build unix

package app

import (
	"math"
	"syscall"
)

// descriptorLimit is how many files the process may have open: the soft limit, which Go has raised to the hard one at its
// start; 0: not known.
func descriptorLimit() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur, math.MaxInt32))
}
