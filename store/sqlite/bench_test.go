package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func openBench(b *testing.B) *Store {
	defaults := Defaults(policy.Builtin())
	defaults.LaneConcurrency = 10_000
	s, err := Open(b.Context(), Options{Path: filepath.Join(b.TempDir(), "jobs.db"), Limits: defaults.Limits()})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	return s
}

// report reports the jobs per second and, since other work may share the machine, the processor time per job.
func report(b *testing.B, jobs int64, before time.Duration) {
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(jobs), "cpu-µs/job")
	b.ReportMetric(0, "ns/op")
}

func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

var benchBody = []byte(`{"order": 4711, "customer": "42", "lines": [{"sku": "a-1", "count": 2}, {"sku": "b-7", ` +
	`"count": 1}]}`)

func benchEntries(n int, lane string, delay time.Duration) []store.NewJob {
	entries := make([]store.NewJob, n)
	for i := range entries {
		entries[i].Spec = job.Spec{
			ID:    job.NewID(time.Now(), 0),
			Queue: job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: lane},
			URL:   "http://127.0.0.1:9999/hooks/close", Method: "POST",
			ContentType: "application/json", BodyKind: job.BodyJSON, Body: benchBody,
		}
		entries[i].Delay = delay
	}
	return entries
}

// BenchmarkInsert registers jobs in batches, by 16 callers at once. An iteration is one batch.
func BenchmarkInsert(b *testing.B) {
	for _, size := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s := openBench(b)
			var lanes atomic.Int64
			before := processorTime(b)
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				lane := fmt.Sprintf("host-%d:80", lanes.Add(1))
				for pb.Next() {
					_, err := s.Insert(context.Background(), store.NewToken(), benchEntries(size, lane, time.Hour))
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
			report(b, int64(b.N*size), before)
		})
	}
}

// BenchmarkClaimSettle claims and delivers jobs in batches, by 8 callers at once. An iteration is one batch.
func BenchmarkClaimSettle(b *testing.B) {
	for _, size := range []int{16, 64, 256} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			s := openBench(b)
			const lanes = 8
			perLane := b.N/lanes + 32
			for lane := range lanes {
				for range perLane {
					_, err := s.Insert(b.Context(), store.NewToken(),
						benchEntries(size, fmt.Sprintf("lane-%d", lane), 0))
					require.NoError(b, err)
				}
			}
			var callers, done atomic.Int64
			before := processorTime(b)
			b.ResetTimer()
			b.SetParallelism(4)
			b.RunParallel(func(pb *testing.PB) {
				lane := callers.Add(1) % lanes
				q := job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: fmt.Sprintf("lane-%d", lane)}
				request := store.ClaimRequest{
					Queues: []store.QueueClaim{{Queue: q, Max: size, Timeout: 10 * time.Second}},
					Max:    size, MaxBytes: 16 << 20, Margin: 10 * time.Second,
				}
				claimed, err := s.Claim(context.Background(), store.NewToken(), request)
				for pb.Next() && err == nil {
					items := make([]store.Settlement, len(claimed.Jobs))
					for i, h := range claimed.Jobs {
						items[i] = store.Settlement{
							Ref: h.Ref(), Queue: h.Queue, Lease: h.Lease,
							Verdict: policy.Verdict{Kind: policy.Delivered}, Attempt: job.Attempt{
								N: h.Attempts + 1, Kind: job.KindAttempt, StartedAt: time.Now().UTC(),
								Duration: 3 * time.Millisecond, Status: 200, Verdict: "delivered", Body: []byte("ok"),
							},
						}
					}
					done.Add(int64(len(items)))
					_, claimed, err = s.Settle(context.Background(), store.NewToken(), items, &request)
				}
				if err != nil {
					b.Error(err)
				}
			})
			report(b, done.Load(), before)
		})
	}
}

// BenchmarkClaimSettleLanes delivers 256 jobs per iteration, taken from as many lanes as the name says.
func BenchmarkClaimSettleLanes(b *testing.B) {
	const size, all = 256, 1024
	for _, lanes := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			s := openBench(b)
			queues := make([]store.QueueClaim, max(lanes, all/size*lanes))
			for i := range queues {
				queues[i] = store.QueueClaim{
					Queue: job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: fmt.Sprintf("lane-%d", i)},
					Max:   size / lanes, Timeout: 10 * time.Second,
				}
			}
			jobs := 0
			more := func() { // one iteration's jobs for each part of the lanes
				for from := 0; from < len(queues); from += lanes {
					entries := benchEntries(size, "", 0)
					for i := range entries {
						entries[i].Queue = queues[from+i%lanes].Queue
					}
					insert(b, s, entries...)
					jobs++
				}
			}
			for jobs < b.N+len(queues)/lanes {
				more()
			}
			var claimed store.ClaimResult
			before := processorTime(b)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				from := i * lanes % len(queues)
				request := store.ClaimRequest{
					Queues: queues[from : from+lanes], Max: size, MaxBytes: 16 << 20,
					Margin: 10 * time.Second,
				}
				items := make([]store.Settlement, len(claimed.Jobs))
				for k, h := range claimed.Jobs {
					items[k] = settlementOf(h, policy.Verdict{Kind: policy.Delivered})
				}
				var err error
				_, claimed, err = s.Settle(b.Context(), store.NewToken(), items, &request)
				require.NoError(b, err)
				require.Len(b, claimed.Jobs, size)
			}
			report(b, int64(b.N)*size, before)
		})
	}
}

// BenchmarkOpen opens a database with a million pending jobs in ten thousand lanes, which an unclean end left behind.
func BenchmarkOpen(b *testing.B) {
	o := options(b)
	o.driver = nil
	s, err := Open(b.Context(), o)
	require.NoError(b, err)
	const lanes, perLane = 10_000, 100
	for lane := range lanes {
		insert(b, s, benchEntries(perLane, fmt.Sprintf("lane-%d", lane), time.Hour)...)
	}
	require.NoError(b, s.Close())
	for b.Loop() {
		s, err := Open(b.Context(), o)
		require.NoError(b, err)
		b.StopTimer()
		require.NoError(b, s.Close())
		b.StartTimer()
	}
}
