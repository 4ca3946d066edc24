package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Smallest sensible limits of a process.
const (
	minMemory = 256 << 20 // bytes: attempts in flight and requests of all clients, at their bounds
	minCPUs   = 500       // thousandths of a processor
	// threads: Go starts some for each processor, and one for each file or name lookup that blocks
	minPIDs  = 64
	zonesOld = 2 // years: governments change clocks at short notice
)

// Process is what the checks of a process look at.
type Process struct {
	// Files is the limit of open files; zero: not known. FilesNeeded is how many all workers and connections need.
	Files, FilesNeeded int
	// MemoryLimit is Go's memory limit in bytes; math.MaxInt64: none.
	MemoryLimit int64
	PID         int
	// Root is the root of the file system.
	Root fs.FS
	Now  time.Time
}

// Check returns the check of the process.
func (p Process) Check() Check {
	return Check{
		Subject: "process", Names: []Name{ProcessFiles, ProcessMemory, ProcessCPU, ProcessPID, ProcessZones},
		Run: func(context.Context) ([]Finding, error) {
			return slices.Concat(ProcessFiles.of(p.checkFiles()), ProcessMemory.of(p.checkMemory()),
				ProcessCPU.of(p.checkCPU()), ProcessPID.of(p.checkPID()), ProcessZones.of(p.checkZones())), nil
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
			size(p.MemoryLimit), size(group))
	case group < minMemory:
		return warn("Raise the limit to 256 MiB or more.",
			"the control group allows %s: with many attempts in flight the kernel may kill the process", size(group))
	case p.MemoryLimit < minMemory:
		return warn("Raise GOMEMLIMIT to 230 MiB or more, or unset it.", "Go's memory limit is %s: with many "+
			"attempts in flight the process spends its time collecting garbage", size(p.MemoryLimit))
	case group == NoLimit:
		return good("the control group sets no limit")
	}
	return good("the control group allows %s, Go's memory limit is %s", size(group), size(p.MemoryLimit))
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

func (p Process) checkPID() Finding {
	where := fmt.Sprintf("pid %d", p.PID)
	if p.PID == 1 {
		where = "pid 1 of a container, which stops in order on SIGTERM"
	}
	if most := GroupPIDs(p.Root); most < minPIDs {
		return warn("Raise it to 64 or more (--pids-limit, TasksMax).", "%s; the control group allows %d threads",
			where, most)
	}
	return good("%s", where)
}

// zoneFolders are where Go looks for the system's time zones, before those in the program.
var zoneFolders = []string{"usr/share/zoneinfo", "usr/share/lib/zoneinfo", "usr/lib/locale/TZ", "etc/zoneinfo"}

// checkZones loads a zone, and reads the release of the system's database.
func (p Process) checkZones() Finding {
	const example = "Europe/Berlin"
	if err := tryZone(example); err != nil {
		return fault("Remove or repair the time zones of the system (/usr/share/zoneinfo, ZONEINFO): without them "+
			"the program has its own.", "schedules in %s cannot run: %v", example, err)
	}
	for _, folder := range zoneFolders {
		if _, err := fs.Stat(p.Root, folder+"/"+example); err != nil {
			continue
		}
		release := zoneRelease(p.Root, folder)
		var year int
		if _, err := fmt.Sscanf(release, "%4d", &year); err != nil {
			return unknown("Ask the system's package manager for the version of tzdata, and keep it up to date.",
				"%s loads from /%s, which does not tell its release", example, folder)
		}
		if p.Now.Year()-year >= zonesOld {
			return warn("Update the system's package tzdata, and restart Ringback.", "the time zones of the system "+
				"are those of release %s: schedules in zones whose rules have changed run at a wrong hour", release)
		}
		return good("release %s of the system (/%s)", release, folder)
	}
	return good("those in the program, built with %s", runtime.Version())
}

// tryZone returns an error if a zone cannot be loaded or does not change its clocks.
func tryZone(name string) error {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return err // it names the zone
	}
	_, winter := time.Date(2024, 1, 1, 0, 0, 0, 0, zone).Zone()
	_, summer := time.Date(2024, 7, 1, 0, 0, 0, 0, zone).Zone()
	if winter != 3600 || summer != 7200 {
		return fmt.Errorf("%s has offsets of %d s and %d s", name, winter, summer)
	}
	return nil
}

// zoneRelease returns the release of a time zone database such as 2026b; empty: not known.
func zoneRelease(root fs.FS, folder string) string {
	if text, err := fs.ReadFile(root, folder+"/+VERSION"); err == nil {
		return strings.TrimSpace(string(text))
	}
	text, err := fs.ReadFile(root, folder+"/tzdata.zi")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), "\n")
	release, _ := strings.CutPrefix(first, "# version ")
	return release
}

// size formats bytes.
func size(n int64) string {
	if n == math.MaxInt64 {
		return "no limit"
	}
	return Size(n)
}

// Size formats bytes for people.
func Size(n int64) string {
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
