package redis

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

const batch = 64

// The benchmarks measure the hot path: go test -run '^$' -bench . ./store/redis. One operation is one job. The result
// to compare is jobs/s.
func BenchmarkInsert(b *testing.B) {
	for _, lanes := range []int{1, 64} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			s := open(b, Options{URL: redistest.Start(b).URL()})
			id := 0
			b.ResetTimer()
			for done := 0; done < b.N; done += batch {
				insert(b, s, bulk(&id, lanes, time.Hour)...)
			}
			perSecond(b)
		})
	}
}

// BenchmarkParseJob measures what Go does for one claimed job, without the client.
func BenchmarkParseJob(b *testing.B) {
	e := entry("job-1")
	head, rest, err := (&layout.Record{Spec: e.Spec}).Encode("1")
	require.NoError(b, err)
	text := string(head) + "\x01\x9a\xa8\x3a\x89\xc0" + string(rest)
	line := "AbCdEfGhIjKlMnOpQrStUv@1 0 360 - 1763759000000 - 1763759000000 1763759000000 1 0 0 0 0"
	b.ReportAllocs()
	for b.Loop() {
		stored, err := layout.ParseJob("job-1", text, line, false, lane)
		if err != nil {
			b.Fatal(err)
		}
		_ = stored.Job(1763759000001)
	}
}

func BenchmarkClaimAndSettle(b *testing.B) {
	for _, lanes := range []int{1, 64} {
		for _, callers := range []int{1, 8} {
			b.Run(fmt.Sprintf("lanes=%d/callers=%d", lanes, callers),
				func(b *testing.B) { claimAndSettle(b, lanes, callers) })
		}
	}
}

func claimAndSettle(b *testing.B, lanes, callers int) {
	s := open(b, Options{URL: redistest.Start(b).URL(), Limits: policy.Limits{Concurrency: 1000}})
	id := 0
	for done := 0; done < b.N+callers*batch; done += batch {
		insert(b, s, bulk(&id, lanes, 0)...)
	}
	request := store.ClaimRequest{Max: batch, MaxBytes: 1 << 20, Margin: time.Minute}
	for i := range lanes {
		q := lane
		q.Lane = fmt.Sprint("lane-", i)
		request.Queues = append(request.Queues,
			store.QueueClaim{Queue: q, Max: max(1, batch/lanes), Timeout: 10 * time.Second})
	}
	var done atomic.Int64
	b.ResetTimer()
	b.SetParallelism(callers)
	finished := make(chan error, callers)
	for range callers {
		go func() {
			finished <- func() error {
				held, err := s.Shards()[0].Claim(b.Context(), store.NewToken(), request)
				for err == nil && done.Load() < int64(b.N) {
					items := make([]store.Settlement, 0, len(held.Jobs))
					for _, h := range held.Jobs {
						items = append(items, settlement(h, policy.Verdict{Kind: policy.Delivered}, 200))
					}
					done.Add(int64(len(items)))
					_, held, err = s.Shards()[0].Settle(b.Context(), store.NewToken(), items, &request)
				}
				return err
			}()
		}()
	}
	for range callers {
		require.NoError(b, <-finished)
	}
	perSecond(b)
}

// BenchmarkClaimManyLanes claims one job of each of 500 of 1,000 lanes, and settles the jobs of the claim before.
// beyond-limit: one lane had more claimed jobs than its limit.
func BenchmarkClaimManyLanes(b *testing.B) {
	const lanes, perClaim = 1000, 500
	for _, beyond := range []bool{false, true} {
		b.Run(fmt.Sprintf("beyond-limit=%t", beyond), func(b *testing.B) {
			s := open(b, Options{URL: redistest.Start(b).URL(), Limits: policy.Limits{Concurrency: 1}})
			id, owner := 0, store.NewLeaseOwner()
			for done := 0; done < b.N+10*lanes; done += batch {
				insert(b, s, bulk(&id, lanes, 0)...)
			}
			if beyond {
				q := lane
				q.Lane = "lane-0"
				_, err := s.Shards()[0].Claim(b.Context(), owner.NewToken(), store.ClaimRequest{
					Queues: []store.QueueClaim{{Queue: q, Max: 2, Timeout: time.Hour, Ahead: 1}},
					Max:    2, MaxBytes: 1 << 20,
				})
				require.NoError(b, err)
			}
			var items []store.Settlement
			before := cpuTime(b, s)
			b.ResetTimer()
			for done, from := 0, 0; done < b.N; from = (from + perClaim) % lanes {
				request := store.ClaimRequest{Max: perClaim, MaxBytes: 1 << 20, Margin: time.Minute}
				for i := range perClaim {
					q := lane
					q.Lane = fmt.Sprint("lane-", from+i)
					request.Queues = append(request.Queues,
						store.QueueClaim{Queue: q, Max: 1, Timeout: 10 * time.Second})
				}
				_, claimed, err := s.Shards()[0].Settle(b.Context(), owner.NewToken(), items, &request)
				require.NoError(b, err)
				items = items[:0]
				for _, h := range claimed.Jobs {
					items = append(items, settlement(h, policy.Verdict{Kind: policy.Delivered}, 200))
				}
				done += len(items)
			}
			perSecond(b)
			b.ReportMetric(float64((cpuTime(b, s)-before).Microseconds())/float64(b.N), "redis-µs/job")
		})
	}
}

// cpuTime returns the processor time of the server.
func cpuTime(b *testing.B, s *Store) (used time.Duration) {
	b.Helper()
	cpu, err := s.Client.InfoMap(b.Context(), "cpu").Result()
	require.NoError(b, err)
	for _, kind := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(cpu["CPU"][kind], 64)
		require.NoError(b, err)
		used += time.Duration(seconds * float64(time.Second))
	}
	return used
}

// bulk returns a batch of jobs spread over lanes, with ids like those that the API generates.
func bulk(id *int, lanes int, delay time.Duration) []store.NewJob {
	entries := make([]store.NewJob, batch)
	for i := range entries {
		*id++
		e := entry(job.NewID(time.Now(), 0))
		e.Lane = fmt.Sprint("lane-", *id%lanes)
		e.Delay = delay
		entries[i] = e
	}
	return entries
}

func perSecond(b *testing.B) {
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(0, "ns/op")
}

// The job is due later. It has a URL of 36 bytes, a body of 64 and a generated id.
func TestMemory_OfAPendingJobIsSmall(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, Options{URL: server.URL()})
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	e := entry("x")
	e.Lane = "example.com:443"
	require.Len(t, e.URL, 36)
	require.Len(t, e.Body, 64)
	head, rest, err := (&layout.Record{Spec: e.Spec, Due: 30 * 60 * 1000}).Encode("1")
	require.NoError(t, err)
	record := len(head) + 6 + len(rest)
	require.LessOrEqual(t, record, 108, "the record: with 109 bytes Redis takes 16 more for it")

	used := func() int64 {
		found, err := client.InfoMap(t.Context(), "memory").Result()
		require.NoError(t, err)
		return layout.Num(found["Memory"]["used_memory_dataset"])
	}
	add := func(jobs int) {
		id := 0
		for range jobs / batch {
			entries := bulk(&id, 1, 30*time.Minute)
			for i := range entries {
				entries[i].Lane = e.Lane
			}
			insert(t, s, entries...)
		}
	}
	add(16 * batch)
	jobs := testkit.Of[int64](15, 63) * 1024 // with those before as many as fill hash tables
	before := used()
	add(int(jobs))
	each := (used() - before) / jobs
	t.Logf("record %d bytes, %d bytes of redis's memory a pending job", record, each)
	require.Less(t, each, int64(330))
}
