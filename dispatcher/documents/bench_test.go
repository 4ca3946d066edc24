package documents_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/dispatcher/secrets"
	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis"
	"github.com/ringback/ringback/store/sqlite"
)

// BenchmarkChange measures a change of a small topic, alone and among 768 with 30 KB of headers each, until a process
// that carries and delivers has it, and reports the ratio.
func BenchmarkChange(b *testing.B) {
	quiet, limits := slog.New(slog.DiscardHandler), policy.Builtin().Limits()
	for name, open := range map[string]func() (store.Store, error){
		"sqlite": func() (store.Store, error) {
			return sqlite.Open(b.Context(),
				sqlite.Options{Path: filepath.Join(b.TempDir(), "ringback.db"), Limits: limits, Logger: quiet})
		},
		"redis": func() (store.Store, error) {
			return redis.Open(b.Context(), redis.Options{URL: redistest.Start(b).URL(), Limits: limits, Logger: quiet})
		},
	} {
		b.Run(name, func(b *testing.B) {
			among := newChanges(b, open, 768)
			alone := newChanges(b, open, 0) // the locks of the other expire soon
			var took [2]time.Duration
			for b.Loop() {
				for i, change := range []func(){alone, among} {
					began := time.Now()
					change()
					took[i] += time.Since(began)
				}
			}
			b.ReportMetric(float64(took[0].Nanoseconds())/float64(b.N), "ns-alone")
			b.ReportMetric(float64(took[1].Nanoseconds())/float64(b.N), "ns-among-768")
			b.ReportMetric(float64(took[1])/float64(took[0]), "ratio")
		})
	}
}

// newChanges opens a store with a number of large topics, and returns a function that changes a small one.
func newChanges(b *testing.B, open func() (store.Store, error), large int) func() {
	s, err := open()
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	put := func(name string, p policy.Topic) {
		_, err := store.PutTopic(b.Context(), s, store.Topic{Namespace: job.DefaultNamespace, Name: name, Policy: p})
		require.NoError(b, err)
	}
	for i := range large {
		put(fmt.Sprint("large-", i),
			policy.Topic{Headers: map[string][]string{"X-Large": {strings.Repeat("x", 30_000)}}})
	}
	put("small", policy.Topic{Workers: 1})
	cache := documents.NewPolicies(documents.PolicyOptions{
		Settings: s, OpenCredentials: func(store.Topic) *secrets.Credentials { return nil },
		Logger: slog.New(slog.DiscardHandler),
	})
	_, err = cache.Reload(b.Context())
	require.NoError(b, err)
	var carriers []store.Leadership
	for _, shard := range s.Shards() {
		l, err := shard.Lead(b.Context())
		require.NoError(b, err)
		carriers = append(carriers, l)
	}
	workers := 1
	return func() {
		workers = workers%100 + 1
		put("small", policy.Topic{Workers: workers})
		for _, l := range carriers {
			require.NoError(b, l.Extend(b.Context()))
		}
		t, err := cache.Current(b.Context(), job.DefaultNamespace, "small")
		require.NoError(b, err)
		require.Equal(b, workers, t.Resolved.Workers)
	}
}
