package main

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// limitMemory sets the Go memory limit to nine tenths of the control group's limit. It does nothing when GOMEMLIMIT is set
// or the control group has no limit.
func limitMemory(root fs.FS) {
	limit := cgroupLimit(root)
	if limit == math.MaxInt64 || os.Getenv("GOMEMLIMIT") != "" { // off, too
		return
	}
	debug.SetMemoryLimit(limit / 10 * 9)
}

// cgroupLimit returns the smallest memory.max of the process's control group and its ancestors (cgroup v2), in bytes;
// math.MaxInt64: unlimited.
func cgroupLimit(root fs.FS) int64 {
	limit := int64(math.MaxInt64)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return limit
	}
	for line := range strings.Lines(string(groups)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok {
			continue
		}
		for dir := path.Join("sys/fs/cgroup", group); strings.HasPrefix(dir, "sys/fs/cgroup"); dir = path.Dir(dir) {
			text, err := fs.ReadFile(root, path.Join(dir, "memory.max"))
			if err != nil {
				continue
			}
			if most, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && most > 0 {
				limit = min(limit, most)
			}
		}
	}
	return limit
}
