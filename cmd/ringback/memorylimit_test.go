package main

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

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
