package doctor

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestMemory_IsTheSmallestLimitOfTheGroups(t *testing.T) {
	const none = NoLimit
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control groups": {nil, none},
		"a container": {
			map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20,
		},
		"no limit": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, none},
		"a service": {map[string]string{
			"proc/self/cgroup": "0::/system.slice/ringback.service\n",
			"sys/fs/cgroup/system.slice/ringback.service/memory.max": "268435456\n",
			"sys/fs/cgroup/system.slice/memory.max":                  "max\n",
		}, 256 << 20},
		"the group around it": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
			"sys/fs/cgroup/a/memory.max": "1000000\n",
		}, 1000000},
		"version 1": {
			map[string]string{"proc/self/cgroup": "9:memory:/a\n", "sys/fs/cgroup/a/memory.max": "1000000\n"}, none,
		},
		"a path that " +
			"leaves": {map[string]string{"proc/self/cgroup": "0::/../../etc\n", "etc/memory.max": "1000000\n"}, none},
		"nonsense": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "-1\n"}, none},
	} {
		root := make(fstest.MapFS)
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		require.Equal(t, c.want, GroupMemory(root), name)
	}
}

func TestGroupMilliCPUs_IsTheSmallestLimitOfTheGroups(t *testing.T) {
	for text, want := range map[string]int64{
		"max 100000\n": NoLimit, "50000 100000\n": 500, "250000 100000": 2500, "x y": NoLimit, "": NoLimit,
		"1 0": NoLimit,
	} {
		require.Equal(t, want, GroupMilliCPUs(fstest.MapFS{
			"proc/self/cgroup": {Data: []byte("0::/a\n")}, "sys/fs/cgroup/a/cpu.max": {Data: []byte(text)},
		}), text)
	}
}
