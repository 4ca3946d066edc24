package main

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestMemoryLimit_IsTheControlGroupsLimit(t *testing.T) {
	const none = math.MaxInt64
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control groups": {nil, none},
		"a container":       {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20},
		"no limit":          {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, none},
		"a service": {map[string]string{
			"proc/self/cgroup": "0::/system.slice/ringback.service\n",
			"sys/fs/cgroup/system.slice/ringback.service/memory.max": "268435456\n", "sys/fs/cgroup/system.slice/memory.max": "max\n",
		}, 256 << 20},
		"the group around it": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1000000\n",
		}, 1000000},
		"version 1":          {map[string]string{"proc/self/cgroup": "9:memory:/a\n", "sys/fs/cgroup/a/memory.max": "1000000\n"}, none},
		"a path that leaves": {map[string]string{"proc/self/cgroup": "0::/../../etc\n", "etc/memory.max": "1000000\n"}, none},
		"nonsense":           {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "-1\n"}, none},
	} {
		root := make(fstest.MapFS)
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		require.Equal(t, c.want, cgroupLimit(root), name)
	}
}

func TestMemoryLimit_KeepsGOMEMLIMIT(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	pod := fstest.MapFS{
		"proc/self/cgroup":         &fstest.MapFile{Data: []byte("0::/\n")},
		"sys/fs/cgroup/memory.max": &fstest.MapFile{Data: []byte("536870910\n")},
	}
	debug.SetMemoryLimit(math.MaxInt64)
	t.Setenv("GOMEMLIMIT", "off")
	limitMemory(pod)
	require.Equal(t, int64(math.MaxInt64), debug.SetMemoryLimit(-1), "GOMEMLIMIT holds")
	t.Setenv("GOMEMLIMIT", "")
	limitMemory(fstest.MapFS{})
	require.Equal(t, int64(math.MaxInt64), debug.SetMemoryLimit(-1))
	limitMemory(pod)
	require.EqualValues(t, 536870910/10*9, debug.SetMemoryLimit(-1))
}
