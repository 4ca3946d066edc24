package doctor

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// NoLimit is the limit of a resource that has none.
const NoLimit = math.MaxInt64

// GroupMemory returns the smallest memory.max in bytes. root is the root of the file system.
func GroupMemory(root fs.FS) int64 { return smallest(root, "memory.max", parseInt) }

// GroupMilliCPUs returns the smallest cpu.max in thousandths of a processor.
func GroupMilliCPUs(root fs.FS) int64 {
	return smallest(root, "cpu.max", func(text string) int64 {
		quota, period, _ := strings.Cut(text, " ")
		q, p := parseInt(quota), parseInt(period)
		if q == 0 || p == 0 {
			return 0
		}
		return q * 1000 / p
	})
}

// smallest returns the smallest positive value of a file.
func smallest(root fs.FS, file string, parse func(string) int64) int64 {
	limit := int64(NoLimit)
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
			text, err := fs.ReadFile(root, path.Join(dir, file))
			if err != nil {
				continue
			}
			if most := parse(strings.TrimSpace(string(text))); most > 0 {
				limit = min(limit, most)
			}
		}
	}
	return limit
}

// parseInt returns 0 for "max", and for what is no number.
func parseInt(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
