package transfer_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringback/ringback/dispatcher/transfer"
	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis"
	"github.com/ringback/ringback/store/storetest"
)

func openRedis(t *testing.T, url string, shards int) store.Store {
	t.Helper()
	s, err := redis.Open(t.Context(), redis.Options{
		URL: url, Shards: shards, Limits: policy.Builtin().Limits(),
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// pipe exports from some stores into others, as by export | import.
func pipe(t *testing.T, from, to transfer.Options) (exported transfer.Ledger, imported transfer.Imported) {
	t.Helper()
	r, w := io.Pipe()
	exporting := make(chan error, 1)
	go func() {
		var err error
		exported, err = transfer.Export(t.Context(), w, from)
		exporting <- err
		_ = w.CloseWithError(io.EOF)
	}()
	imported, err := transfer.Import(t.Context(), r, to)
	require.NoError(t, err)
	require.NoError(t, <-exporting)
	return exported, imported
}

// jobCount is the number of jobs of TestTransfer_BetweenEngines: RINGBACK_TRANSFER_JOBS, see the target transfer of the
// Makefile.
func jobCount(t *testing.T) int {
	t.Helper()
	text, set := os.LookupEnv("RINGBACK_TRANSFER_JOBS")
	if !set {
		return 150
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func TestTransfer_BetweenEngines(t *testing.T) {
	servers := redistest.StartCluster(t, 3, 0)
	n := jobCount(t)
	first := options(openSQLite(t))
	_ = rapid.Custom(func(t *rapid.T) bool { fill(t, first); return true }).Example(7)
	var jobs []store.NewJob
	for i := range n {
		j := newJob(fmt.Sprint("many-", i), job.Queue{
			Namespace: "default", Topic: fmt.Sprint("topic-", i%3),
			Lane: fmt.Sprintf("%d.example:443", i%50),
		})
		j.Delay = time.Hour
		jobs = append(jobs, j)
	}
	insert(t, first.Stores[0].Store, jobs...)
	for i := 0; i < n; i += 10 {
		_, err := first.Stores[0].Shards()[0].Cancel(t.Context(), store.NewToken(), jobs[i].Ref(), store.Cancellation{})
		require.NoError(t, err)
	}

	second := options(openRedis(t, servers.URL(), 0))
	require.Len(t, second.Stores[0].Shards(), 16)
	third := options(openSQLite(t))
	began := time.Now()
	exported, imported := pipe(t, first, second)
	t.Logf("SQLite to a cluster: %d jobs in %s", exported.Jobs(), time.Since(began))
	require.Equal(t, exported, imported.Stored)
	began = time.Now()
	again, last := pipe(t, second, third)
	t.Logf("a cluster to SQLite: %d jobs in %s", again.Jobs(), time.Since(began))
	require.Equal(t, exported, again)
	require.Equal(t, exported, last.Stored)
	require.Greater(t, exported.Jobs(), int64(n))

	wanted := read(t, first, "default", "shop")
	require.Equal(t, wanted, read(t, second, "default", "shop"))
	require.Equal(t, wanted, read(t, third, "default", "shop"))
	for _, o := range []transfer.Options{second, third} {
		require.NoError(t, storetest.Check(context.Background(), o.Stores[0]))
	}
}
