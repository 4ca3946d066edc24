package assets

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScripts_AreValid(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("Node.js was not found")
	}
	require.NoError(t, err, "Node.js is needed")
	for _, name := range []string{"theme.js", "console.js"} {
		out, err := exec.CommandContext(t.Context(), node, "--check", name).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}
