package queue

import (
	"slices"
	"testing"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// BenchmarkAddSettlements is what Go does for one settlement besides the client.
func BenchmarkAddSettlements(b *testing.B) {
	item := store.Settlement{
		Ref: job.Ref{Namespace: job.DefaultNamespace, ID: "job-1"}, Lease: "AbCdEfGhIjKlMnOpQrStUv",
		Verdict: policy.Verdict{Kind: policy.Delivered}, Attempt: job.Attempt{
			N: 1, Kind: job.KindAttempt, StartedAt: time.Now().UTC(), Duration: time.Millisecond, Status: 200,
			Verdict: policy.Delivered.String(),
		},
	}
	items := slices.Repeat([]store.Settlement{item}, store.MaxBatch)
	b.ReportAllocs()
	for done := 0; done < b.N; done += len(items) {
		addSettlements(&layout.Call{Args: make([]any, 0, 3*len(items))}, items, func(int) int { return 1 })
	}
}
