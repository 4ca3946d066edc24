package work_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis"
	"github.com/ringback/ringback/store/sqlite"
)

// BenchmarkRevive revives all dead jobs of a store, as many as the variable WORK_JOBS says.
//
//	WORK_JOBS=1000000 go test ./dispatcher/work -run '^$' -bench Revive -benchtime 1x -timeout 1h
func BenchmarkRevive(b *testing.B) {
	n := 1000
	if text := os.Getenv("WORK_JOBS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	limits := policy.Builtin().Limits()
	limits.KeepDead.Max, limits.KeepDead.MaxBytes = new(int64(n)), new(int64(1<<40))
	engines := map[string]func(b *testing.B) (store.Store, error){
		"sqlite": func(b *testing.B) (store.Store, error) {
			return sqlite.Open(b.Context(),
				sqlite.Options{Path: filepath.Join(b.TempDir(), "ringback.db"), Limits: limits})
		},
		"redis": func(b *testing.B) (store.Store, error) {
			return redis.Open(b.Context(), redis.Options{URL: redistest.Start(b).URL(), Limits: limits})
		},
	}
	for name, open := range engines {
		b.Run(name, func(b *testing.B) {
			s, err := open(b)
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, s.Close()) })
			start(b, s)
			insertDead(b, s, n)
			for b.Loop() {
				id := create(b, s, store.WorkOrder{Action: store.WorkRevive, Filter: allDead()})
				require.Eventually(b, func() bool { return get(b, s, id).State == store.WorkDone },
					time.Hour, time.Millisecond)
				b.StopTimer()
				require.EqualValues(b, n, get(b, s, id).Done)
				killAll(b, s, n)
				b.StartTimer()
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
