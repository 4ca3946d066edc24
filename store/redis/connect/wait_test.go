package connect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWait_IsParsed(t *testing.T) {
	for text, want := range map[string]Wait{
		"":                               {},
		"replicas=1":                     {Replicas: 1, Timeout: 100 * time.Millisecond},
		"replicas=2,timeout=1s":          {Replicas: 2, Timeout: time.Second},
		"fsync":                          {Fsync: true, Timeout: 100 * time.Millisecond},
		"timeout=1ms, fsync,replicas=64": {Replicas: 64, Fsync: true, Timeout: time.Millisecond},
	} {
		var w Wait
		require.NoError(t, w.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, w, text)
	}
	for _, text := range []string{
		"replicas", "replicas=0", "replicas=65", "replicas=x", "fsync=yes", "timeout=1s",
		"replicas=1,replicas=2", "fsync,timeout=0s", "fsync,timeout=6s", "fsync,timeout=5", "quorum=2", ",",
	} {
		require.Error(t, new(Wait).UnmarshalText([]byte(text)), text)
	}
}
