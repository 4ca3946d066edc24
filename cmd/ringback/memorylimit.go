package main

import (
	"io/fs"
	"os"
	"runtime/debug"

	"github.com/ringback/ringback/internal/doctor"
)

// limitMemory sets the Go memory limit to nine tenths of the control group's limit. It does nothing when GOMEMLIMIT is
// set or the control group has no limit.
func limitMemory(root fs.FS) {
	limit := doctor.GroupMemory(root)
	if limit == doctor.NoLimit || os.Getenv("GOMEMLIMIT") != "" { // off, too
		return
	}
	debug.SetMemoryLimit(limit / 10 * 9)
}
