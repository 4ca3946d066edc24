package main

import (
	"fmt"
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBallast_IsOmittedUnderASmallMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, c := range []struct {
		limit int64
		want  int
	}{
		{100 << 20, 0},
		{8*ballastBytes - 1, 0},
		{8 * ballastBytes, ballastBytes},
		{math.MaxInt64, ballastBytes}, // unlimited
	} {
		t.Run(fmt.Sprint(c.limit), func(t *testing.T) {
			debug.SetMemoryLimit(c.limit)
			kept := ballast()
			require.Len(t, kept, c.want)
			require.Equal(t, c.want == 0, kept == nil)
			require.Equal(t, c.limit, debug.SetMemoryLimit(-1), "the limit is unchanged")
		})
	}
}
