package e2e

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/store/redis"
)

// engines are the stores of tests, each new and empty.
var engines = []struct {
	name  string
	store func(t *testing.T) string
}{
	{"sqlite", newSQLite},
	{"redis", newRedis},
	{"redis with 16 shards", newShardedRedis},
}

func newSQLite(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "ringback.db") }

func newRedis(t *testing.T) string { return redistest.Start(t).URL() }

// newShardedRedis returns a store that was created with 16 shards: ringback uses the stored number.
func newShardedRedis(t *testing.T) string {
	t.Helper()
	url := redistest.Start(t).URL()
	s, err := redis.Open(t.Context(), redis.Options{URL: url, Shards: 16, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return url
}

// onEngines runs a test on SQLite and on Redis, in parallel, and with make test-all on Redis with 16 shards, as tests
// of several processes do.
func onEngines(t *testing.T, test func(t *testing.T, store string)) {
	t.Helper()
	t.Parallel()
	for _, e := range testkit.Of(engines[:2], engines) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, e.store(t))
		})
	}
}

// count returns the totals of all topics.
func count(t testing.TB, p *process) counts {
	t.Helper()
	sum := call[struct{ Totals counts }](t, p, http.MethodGet, "/v1/stats", nil, http.StatusOK).Totals
	require.True(t, sum.agree(), "the sums must agree: %s", sum)
	return sum
}

// ended waits until no job is pending, and returns the totals. It ignores errors of an unavailable store.
func ended(t testing.TB, p *process) counts {
	t.Helper()
	var last struct{ Totals counts }
	eventually(t, func() bool {
		var now struct{ Totals counts }
		status, answer, err := send(p.url, http.MethodGet, "/v1/stats", nil)
		if err != nil || status != http.StatusOK || json.Unmarshal(answer, &now) != nil {
			return false
		}
		last = now
		return last.Totals.pending() == 0
	}, "every job must end")
	require.True(t, last.Totals.agree(), "the sums must agree: %s", last.Totals)
	return last.Totals
}
