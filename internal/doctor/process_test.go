package doctor

import (
	"math"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestProcess_ChecksItsLimits(t *testing.T) {
	for _, c := range []struct {
		check   Name
		level   Level
		seen    string
		process Process
		files   map[string]string
	}{
		{check: ProcessFiles, level: OK, seen: "20000 open files at most, 3000 are " +
			"needed", process: Process{Files: 20000, FilesNeeded: 3000}},
		{check: ProcessFiles, level: Warn, seen: "1024 open files at most, all workers need " +
			"3000", process: Process{Files: 1024, FilesNeeded: 3000}},
		{check: ProcessFiles, level: Unknown, seen: "does not tell", process: Process{FilesNeeded: 3000}},

		{check: ProcessMemory, level: OK, seen: "sets no limit"},
		{
			check: ProcessMemory, level: OK, seen: "allows 512 MiB, Go's memory limit is 461 MiB",
			process: Process{MemoryLimit: 483183820}, files: map[string]string{"memory.max": "536870912"},
		},
		{
			check: ProcessMemory, level: Warn, seen: "allows 128 MiB", process: Process{MemoryLimit: 100 << 20},
			files: map[string]string{"memory.max": "134217728"},
		},
		{check: ProcessMemory, level: Warn, seen: "GOMEMLIMIT (1.0 GiB) is " +
			"above", process: Process{MemoryLimit: 1 << 30}, files: map[string]string{"memory.max": "536870912"}},
		{check: ProcessMemory, level: Warn, seen: "GOMEMLIMIT (no limit) is " +
			"above", files: map[string]string{"memory.max": "536870912"}},
		{check: ProcessMemory, level: Warn, seen: "Go's memory limit is 64.0 MiB", process: Process{
			MemoryLimit: 64 << 20,
		}},

		{check: ProcessCPU, level: OK, seen: "processors"},
		{check: ProcessCPU, level: OK, seen: "2.00 processors by the control " +
			"group", files: map[string]string{"cpu.max": "200000 100000"}},
		{check: ProcessCPU, level: Warn, seen: "allows 0.10 " +
			"processors", files: map[string]string{"cpu.max": "10000 100000"}},
	} {
		root := fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/\n")}}
		for name, text := range c.files {
			if len(name) < 20 {
				name = "sys/fs/cgroup/" + name
			}
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		c.process.Root = root
		if c.process.MemoryLimit == 0 {
			c.process.MemoryLimit = math.MaxInt64
		}
		found := Run(t.Context(), c.process.Check())
		require.Len(t, found, 3)
		requireFinding(t, found, c.check, c.level, c.seen)
	}
}

func TestSize_IsShort(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 300 << 20: "300 MiB", 5 << 40: "5.0 TiB", 5000 << 40: "5000 TiB",
	} {
		require.Equal(t, want, Size(n))
	}
}
