package redis

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// BenchmarkList reads pages of lists, one after the other. It reports the time and the round trips of a page, and the
// longest script. There are 20,000 jobs, or as many as LIST_JOBS says:
//
//	LIST_JOBS=1000000 go test -run '^$' -bench 'List$' -benchtime 100x -timeout 1h ./store/redis
func BenchmarkList(b *testing.B) {
	jobs := 20_000
	if text := os.Getenv("LIST_JOBS"); text != "" {
		var err error
		jobs, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	keep := policy.Retention{For: new(24 * time.Hour), Max: new(int64(jobs)), MaxBytes: new(int64(1 << 40))}
	s := open(b, Options{
		URL:    redistest.Start(b).URL(),
		Limits: policy.Limits{Concurrency: jobs, KeepDelivered: keep, KeepDead: keep},
	})
	fillLists(b, s, jobs)
	trips := countTrips(s)
	for _, c := range []struct {
		name   string
		filter store.Filter
	}{
		{"all jobs", store.Filter{}},
		{"dead letters of all topics, newest first", store.Filter{States: []job.State{job.Dead}}},
		{"ended jobs of all topics, oldest " +
			"first", store.Filter{Oldest: true, States: []job.State{job.Dead, job.Delivered}}},
		{"one long lane, newest first", store.Filter{Topic: "long"}},
		{"one long lane, ready jobs", store.Filter{Topic: "long", States: []job.State{job.Ready}, Oldest: true}},
		{"many lanes", store.Filter{Topic: "lanes"}},
		{"many lanes, running jobs", store.Filter{Topic: "lanes", States: []job.State{job.Running}}},
		{"label of one of 1,000 dead " +
			"letters", store.Filter{States: []job.State{job.Dead}, Labels: []store.Label{{Key: "n", Value: "8"}}}},
		{"label of no job", store.Filter{Labels: []store.Label{{Key: "n", Value: "none"}}}},
		{"prefix of no id", store.Filter{IDPrefix: "none"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := c.filter
			f.Namespace, f.Limit, f.ScanLimit = lane.Namespace, 100, 5_000
			require.NoError(b, s.Client.ConfigSet(b.Context(), "slowlog-log-slower-than", "100").Err())
			require.NoError(b, s.Client.Do(b.Context(), "slowlog", "reset").Err())
			var times []time.Duration
			var found, scanned int
			before, used := trips.trips.Load(), cpuTime(b, s)
			for b.Loop() {
				began := time.Now()
				page, err := s.Shards()[0].List(b.Context(), f)
				times = append(times, time.Since(began))
				require.NoError(b, err)
				found, scanned = found+len(page.Jobs), scanned+page.Scanned
				if f.After = page.Reached; !page.More {
					f.After = store.Position{}
				}
			}
			n := float64(len(times))
			slices.Sort(times)
			var longest time.Duration
			entries, err := s.Client.SlowLogGet(b.Context(), -1).Result()
			require.NoError(b, err)
			for _, e := range entries {
				longest = max(longest, e.Duration)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64((cpuTime(b, s)-used).Microseconds())/1000/n, "redis-ms/page")
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "median-ms")
			b.ReportMetric(float64(times[len(times)-1].Microseconds())/1000, "max-ms")
			b.ReportMetric(float64(trips.trips.Load()-before)/n, "trips/page")
			b.ReportMetric(float64(found)/n, "jobs/page")
			b.ReportMetric(float64(scanned)/n, "scanned/page")
			b.ReportMetric(float64(longest.Microseconds())/1000, "longest-script-ms")
		})
	}
}

// fillLists registers jobs: two fifths that have ended in 200 topics, two in one lane of the topic long, some of them
// ready or running, and one in 10,000 lanes of the topic lanes.
func fillLists(b *testing.B, s *Store, jobs int) {
	b.Helper()
	id := 0
	fill := func(n int, change func(i int, e *store.NewJob)) {
		for i := 0; i < n; {
			entries := bulk(&id, 1, 0)
			for k := range entries {
				entries[k].Labels = map[string]string{"n": fmt.Sprint(id % 1000)}
				change(i, &entries[k])
				i++
			}
			insert(b, s, entries...)
		}
	}
	const topics, lanes = 200, 10_000
	queue := func(topic string) job.Queue { return job.Queue{Namespace: lane.Namespace, Topic: topic, Lane: "l"} }
	for ended := 0; ended < jobs*2/5; {
		q := queue(fmt.Sprint("topic-", ended/batch%topics))
		fill(batch, func(_ int, e *store.NewJob) { e.Queue = q })
		claimed, err := s.Shards()[0].Claim(b.Context(), store.NewToken(), store.ClaimRequest{
			Queues: []store.QueueClaim{{Queue: q, Max: batch, Timeout: time.Minute}}, Max: batch, MaxBytes: 1 << 20,
		})
		require.NoError(b, err)
		var items []store.Settlement
		for i, h := range claimed.Jobs {
			v, status := policy.Verdict{Kind: policy.Delivered}, 200
			if i%2 == 0 {
				v, status = policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted}, 500
			}
			items = append(items, settlement(h, v, status))
		}
		settle(b, s, items...)
		ended += len(items)
	}
	began := time.Now()
	fill(jobs*2/5, func(i int, e *store.NewJob) {
		e.Queue, e.RunAt = queue("long"), began.Add(-time.Duration(i)*time.Millisecond)
		if i%2 == 0 {
			e.RunAt = began.Add(time.Hour + time.Duration(i)*time.Millisecond)
		}
	})
	_, err := s.Shards()[0].Claim(b.Context(), store.NewToken(), store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: queue("long"), Max: 500, Timeout: time.Hour}}, Max: 500, MaxBytes: 1 << 20,
	})
	require.NoError(b, err)
	_, err = s.Shards()[0].Carry(b.Context(), store.NewToken(), store.CarryOptions{})
	require.NoError(b, err)
	fill(jobs/5, func(i int, e *store.NewJob) {
		e.Topic, e.Lane, e.RunAt = "lanes", fmt.Sprint("lane-", i%lanes),
			began.Add(time.Hour+time.Duration(i)*time.Millisecond)
	})
}
