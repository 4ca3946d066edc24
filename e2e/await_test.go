package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mustCome bounds each wait for something that must come. Only a fault takes as long, no machine does.
const mustCome = 5 * time.Minute

// eventually waits until cond is true.
func eventually(t testing.TB, cond func() bool, what ...any) {
	t.Helper()
	require.Eventually(t, cond, mustCome, 20*time.Millisecond, what...)
}
