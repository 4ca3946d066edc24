package redis

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

func TestCounts_FindTheOldestReadyJobWithALongBody(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		long := entry("long")
		long.Body = fmt.Appendf(nil, `{"padding":"%010000d"}`, 0)
		began := time.Now()
		insert(t, s, long)
		later := entry("later")
		later.Lane, later.Delay = "other", time.Hour
		insert(t, s, later)
		rows, err := s.Shards()[0].TopicStats(t.Context(), store.StatsFilter{Namespace: lane.Namespace, Limit: 1})
		require.NoError(t, err)
		total, err := s.Shards()[0].Totals(t.Context(), lane.Namespace)
		require.NoError(t, err)
		for _, stats := range append(rows, total) {
			require.EqualValues(t, 1, stats.Ready)
			require.WithinDuration(t, began, stats.OldestDue, time.Minute)
		}
	})
}

// A registration that is refused leaves the name of its topic, until the sweep removes it.
func TestTopicStats_HaveTheSameTopicsWithAndWithoutCounts(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		insert(t, s, entry("a"))
		taken := entry("a")
		taken.Topic, taken.URL = "a-topic", "https://example.com/other"
		insert(t, s, taken)
		for limit := 1; limit <= 3; limit++ {
			filter := store.StatsFilter{Namespace: lane.Namespace, Limit: limit}
			rows, err := s.Shards()[0].TopicStats(t.Context(), filter)
			require.NoError(t, err)
			filter.NamesOnly = true
			names, err := s.Shards()[0].TopicStats(t.Context(), filter)
			require.NoError(t, err)
			require.Len(t, names, len(rows))
			for i := range rows {
				require.Equal(t, rows[i].Topic, names[i].Topic)
				require.Equal(t, rows[i].Registered, names[i].Registered)
			}
		}
	})
}

// BenchmarkCounts counts the jobs of three topics with 1,000 lanes each: all due later, all due, and due beside ones
// that are due later.
func BenchmarkCounts(b *testing.B) {
	s := open(b, Options{URL: redistest.Start(b).URL()})
	shard := s.Shards()[0]
	var jobs []store.NewJob
	for topic, waits := range map[string][]time.Duration{"later": {time.Hour}, "due": {0}, "both": {0, time.Hour}} {
		for n := range 1_000 {
			for i, wait := range waits {
				e := entry(fmt.Sprintf("%s-%d-%d", topic, n, i))
				e.Queue, e.Delay = job.Queue{Namespace: lane.Namespace, Topic: topic, Lane: fmt.Sprintf("lane-%d", n)},
					wait
				jobs = append(jobs, e)
			}
		}
	}
	for batch := range slices.Chunk(jobs, store.MaxBatch) {
		insert(b, s, batch...)
	}
	b.Run("totals", func(b *testing.B) {
		for b.Loop() {
			total, err := shard.Totals(b.Context(), lane.Namespace)
			require.NoError(b, err)
			require.EqualValues(b, 4_000, total.Registered)
		}
	})
	b.Run("topics", func(b *testing.B) {
		for b.Loop() {
			rows, err := shard.TopicStats(b.Context(), store.StatsFilter{Namespace: lane.Namespace, Limit: 50})
			require.NoError(b, err)
			require.Len(b, rows, 3)
		}
	})
}
