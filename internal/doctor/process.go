package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
)

// Smallest sensible limits of a process.
const (
	minMemory = 256 << 20 // bytes: attempts in flight and requests of all clients, at their bounds
	minCPUs   = 500       // thousandths of a processor
)

// Process is what the checks of a process look at.
type Process struct {
	// Files is the limit of open files; zero: not known. FilesNeeded is how many all workers and connections need.
	Files, FilesNeeded int
	// MemoryLimit is Go's memory limit in bytes; NoLimit: none.
	MemoryLimit int64
	// Root is the root of the file system.
	Root fs.FS
}

// Check returns the check of the process.
func (p Process) Check() Check {
	return Check{
		Subject: "process", Names: []Name{ProcessFiles, ProcessMemory, ProcessCPU},
		Run: func(context.Context) ([]Finding, error) {
			return slices.Concat(ProcessFiles.of(p.checkFiles()), ProcessMemory.of(p.checkMemory()),
				ProcessCPU.of(p.checkCPU())), nil
		},
	}
}

func (p Process) checkFiles() Finding {
	switch {
	case p.Files <= 0:
		return unknown("Compare ulimit -n with the sizes in docs/operations.md.",
			"this system does not tell its limit of open files")
	case p.Files < p.FilesNeeded:
		return warn("Raise it (LimitNOFILE of the unit, ulimit -n, --ulimit nofile of the container).",
			"%d open files at most, all workers need %d: fewer attempts will be made at a time", p.Files, p.FilesNeeded)
	}
	return good("%d open files at most, %d are needed", p.Files, p.FilesNeeded)
}

func (p Process) checkMemory() Finding {
	group := GroupMemory(p.Root)
	switch {
	case group != NoLimit && p.MemoryLimit > group:
		return warn("Unset GOMEMLIMIT, or set it to nine tenths of the control group's limit.",
			"GOMEMLIMIT (%s) is above the limit of the control group (%s), at which the kernel kills the process",
			Size(p.MemoryLimit), Size(group))
	case group < minMemory:
		return warn("Raise the limit to 256 MiB or more.",
			"the control group allows %s: with many attempts in flight the kernel may kill the process", Size(group))
	case p.MemoryLimit < minMemory:
		return warn("Raise GOMEMLIMIT to 230 MiB or more, or unset it.", "Go's memory limit is %s: with many "+
			"attempts in flight the process spends its time collecting garbage", Size(p.MemoryLimit))
	case group == NoLimit:
		return good("the control group sets no limit")
	}
	return good("the control group allows %s, Go's memory limit is %s", Size(group), Size(p.MemoryLimit))
}

func (p Process) checkCPU() Finding {
	limit := GroupMilliCPUs(p.Root)
	switch {
	case limit < minCPUs:
		return warn("Raise the CPU limit (--cpus, CPUQuota, resources.limits.cpu) to 0.5 or more.", "the control "+
			"group allows %.2f processors: attempts wait for the next period when it is used up", float64(limit)/1000)
	case limit == NoLimit:
		return good("%d processors", runtime.GOMAXPROCS(0))
	}
	return good("%.2f processors by the control group, GOMAXPROCS is %d", float64(limit)/1000, runtime.GOMAXPROCS(0))
}

// Size formats bytes for people, and NoLimit.
func Size(n int64) string {
	if n == NoLimit {
		return "no limit"
	}
	value, unit := float64(n), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, larger
	}
	if unit == "B" || value >= 100 {
		return fmt.Sprintf("%.0f %s", value, unit)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}
