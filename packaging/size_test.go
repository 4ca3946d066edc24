package packaging

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A function that looks methods up by names that are not constants makes the linker keep all exported methods.
func TestBinary_ContainsNoMethodsThatAreNotCalled(t *testing.T) {
	require.Greater(t, bytes.Count(links, []byte(" -> ")), 100_000, "the linker lists dependencies")
	for line := range bytes.Lines(links) {
		require.NotContains(t, string(line), "<ReflectMethod>", "the linker keeps unused methods for this function")
	}
}

func TestBuilds_HaveTheTagOfTheTests(t *testing.T) {
	_, rest, found := strings.Cut(read(t, "../internal/testkit/flags.txt"), "-tags=")
	require.True(t, found)
	tag, _, _ := strings.Cut(rest, "\n")
	require.Contains(t, read(t, "../Makefile"), "\nTAGS  := "+tag+"\n")
	for _, file := range []string{"../Dockerfile", "dist", "../bench/bench.go", "../e2e/main_test.go"} {
		require.Contains(t, read(t, file), tag, file)
	}
}
