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

// limitMemory has the collector keep the process below nine tenths of the memory that its control group allows, in bytes,
// and collect more often instead when it comes near. It does nothing where GOMEMLIMIT says what holds, or nothing is
// limited.
func limitMemory(root fs.FS) {
	limit := cgroupLimit(root)
	if limit == math.MaxInt64 || os.Getenv("GOMEMLIMIT") != "" { // off, too
		return
	}
	debug.SetMemoryLimit(limit / 10 * 9)
}

// cgroupLimit is the least memory.max of the process's control group and those around it (cgroup v2), in bytes;
// math.MaxInt64: there is none.
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
