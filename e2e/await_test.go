package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// eventually waits until cond is true.
func eventually(t testing.TB, cond func() bool, what ...any) {
	t.Helper()
	require.Eventually(t, cond, testkit.MustCome, 20*time.Millisecond, what...)
}
