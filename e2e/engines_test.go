package e2e

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// engines give a new, empty store each.
var engines = []struct {
	name  string
	store func(t *testing.T) string
}{
	{"sqlite", newSQLite},
	{"redis", newRedis},
}

func newSQLite(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "ringback.db") }

func newRedis(t *testing.T) string { return redistest.Start(t).URL() }

// onEngines runs a test on every engine, side by side.
func onEngines(t *testing.T, test func(t *testing.T, store string)) {
	t.Helper()
	t.Parallel()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, e.store(t))
		})
	}
}

// count reads the sums over all topics.
func count(t testing.TB, p *process) counts {
	t.Helper()
	sum := call[struct{ Totals counts }](t, p, http.MethodGet, "/v1/stats", nil, http.StatusOK).Totals
	require.Equal(t, sum.Registered, sum.Delivered+sum.Dead+sum.Cancelled+sum.pending(), "the sums must agree: %s", sum)
	return sum
}
