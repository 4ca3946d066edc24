package metrics_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ringback/ringback/dispatcher/metrics"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// hundredTopics returns the ends of attempts of a hundred topics.
func hundredTopics() []pool.AttemptEvent {
	all := make([]pool.AttemptEvent, 100)
	for i := range all {
		all[i] = delivered(fmt.Sprintf("order.close-%02d", i))
	}
	return all
}

func BenchmarkAttemptEnded(b *testing.B) {
	m, ends, i := metrics.New(metrics.Options{}), hundredTopics(), 0
	b.ReportAllocs()
	for b.Loop() {
		m.AttemptEnded(ends[i%len(ends)])
		i++
	}
}

func BenchmarkAttemptEndedOfOneTopicByAllCores(b *testing.B) {
	m, e := metrics.New(metrics.Options{}), delivered("orders")
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			m.AttemptEnded(e)
		}
	})
}

// nopStore is a store that does nothing, so that benchmarks measure the instrumentation.
type nopStore struct {
	store.Store
	errs     []error
	inserted []store.InsertResult
}

func (q nopStore) Shards() []store.Shard {
	return []store.Shard{quickShard{nopStore: q}}
}

type quickShard struct {
	store.Shard
	nopStore
}

func (q quickShard) Settle(
	context.Context, store.Token, []store.Settlement, *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	return q.errs, store.ClaimResult{}, nil
}

func (q quickShard) Insert(context.Context, store.Token, []store.NewJob) ([]store.InsertResult, error) {
	return q.inserted, nil
}

func BenchmarkSettleOf128(b *testing.B) {
	q := nopStore{errs: make([]error, 128)}
	s := metrics.New(metrics.Options{}).Store("main", q)
	items := make([]store.Settlement, len(q.errs))
	for i := range items {
		items[i].Queue = job.Queue{Namespace: "default", Topic: fmt.Sprintf("order.close-%02d", i%4)}
		items[i].Verdict = policy.Verdict{Kind: policy.Delivered}
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = s.Shards()[0].Settle(b.Context(), "", items, nil)
	}
}

func BenchmarkInsertOf128(b *testing.B) {
	q := nopStore{inserted: make([]store.InsertResult, 128)}
	s := metrics.New(metrics.Options{}).Store("main", q)
	entries := make([]store.NewJob, len(q.inserted))
	for i := range entries {
		q.inserted[i].Outcome = store.Created
		entries[i].Queue = job.Queue{Namespace: "default", Topic: fmt.Sprintf("order.close-%02d", i%4)}
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = s.Shards()[0].Insert(b.Context(), "", entries)
	}
}

// The largest response at the default limit, without compression.
func BenchmarkScrapeOf200Topics(b *testing.B) {
	m := metrics.New(metrics.Options{})
	stats := make([]store.TopicStats, 201)
	for i := range stats {
		stats[i].Topic = fmt.Sprintf("order.close-%03d", i)
		for _, status := range []int{200, 404, 500} {
			e := delivered(stats[i].Topic)
			e.Result.Status = status
			m.AttemptEnded(e)
		}
	}
	m.Watch(&source{answer: rows(stats...)})
	handler, request := m.Handler(), httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil)
	size := 0
	b.ReportAllocs()
	for b.Loop() {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		size = answer.Body.Len()
	}
	b.ReportMetric(float64(size), "B/scrape")
}
