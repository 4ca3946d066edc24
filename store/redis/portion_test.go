package redis

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Records are read in portions. Jobs of any sizes are claimed in order, each once, as many as there is room for.
func TestClaim_TakesJobsInOrderWithinItsBytes(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL(), Limits: policy.Limits{Concurrency: store.MaxBatch}})
	sizes := []int{10, 20, 100 << 10, 0, 200 << 10, 64, 30 << 10}
	const jobs = 300
	entries := make([]store.NewJob, jobs)
	size := func(i int) int {
		if i < jobs/2 {
			return 8 // many small ones of several portions
		}
		return sizes[i%len(sizes)]
	}
	for i := range entries {
		entries[i] = entry(fmt.Sprintf("job-%03d", i))
		entries[i].Body = bytes.Repeat([]byte("x"), size(i))
	}
	insert(t, s, entries...)
	request := wants(jobs)
	for next := 0; next < jobs; {
		claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
		require.NoError(t, err)
		require.NotEmpty(t, claimed.Jobs)
		used := 0
		for _, h := range claimed.Jobs {
			require.Equal(t, fmt.Sprintf("job-%03d", next), h.ID)
			used += size(next)
			next++
		}
		require.LessOrEqual(t, used, request.MaxBytes)
		require.Equal(t, next < jobs, claimed.Queues[0].More)
		if next < jobs {
			require.Greater(t, used+size(next), request.MaxBytes, "there was room for another")
		}
	}
}
