package e2e

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// The benchmarks run the real binary. Their figures are ratios within one run wherever that says something, because the
// machine's speed is not part of the product. Run them with: make microbench PKG=./e2e
const (
	benchJobs    = 50_000
	benchWorkers = 64
	benchRounds  = 3
)

// body is what each job carries: 256 bytes of JSON.
var benchBody = `{"order":4711,"note":"` + strings.Repeat("x", 256-24) + `"}`

// sink is a receiver that only counts, and keeps how late each request was.
type sink struct {
	*httptest.Server
	count atomic.Int64

	mu   sync.Mutex
	late []time.Duration
}

func newSink(b *testing.B) *sink {
	s := &sink{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		now := time.Now()
		_, _ = io.Copy(io.Discard, r.Body)
		if due, err := strconv.ParseInt(r.Header.Get("Ringback-Due-At"), 10, 64); err == nil {
			s.mu.Lock()
			s.late = append(s.late, now.Sub(time.UnixMilli(due)))
			s.mu.Unlock()
		}
		s.count.Add(1)
	}))
	b.Cleanup(s.Close)
	return s
}

// reset forgets what was counted.
func (s *sink) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = nil
	s.count.Store(0)
}

// reached waits until n requests have come.
func (s *sink) reached(b *testing.B, n int64) {
	b.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for s.count.Load() < n {
		if time.Now().After(deadline) {
			b.Fatalf("%d of %d requests came", s.count.Load(), n)
		}
		time.Sleep(time.Millisecond)
	}
}

// bare is the limit: a net/http client loop that POSTs the same body to the same receiver.
func bare(b *testing.B, url string) time.Duration {
	b.Helper()
	c := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: benchWorkers, DialContext: (&net.Dialer{}).DialContext,
	}}
	defer c.CloseIdleConnections()
	began := time.Now()
	var left atomic.Int64
	left.Store(benchJobs)
	var all sync.WaitGroup
	for range benchWorkers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				resp, err := c.Post(url, "application/json", strings.NewReader(benchBody))
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// benchEngines give a store each, and how many round trips its clients made so far, where that can be told.
var benchEngines = []struct {
	name string
	open func(b *testing.B) (store string, trips func() int64)
}{
	{"sqlite", func(b *testing.B) (string, func() int64) {
		return "sqlite:" + filepath.Join(b.TempDir(), "ringback.db"), nil
	}},
	{"redis", func(b *testing.B) (string, func() int64) {
		server := redistest.Start(b)
		c := redis.NewClient(&redis.Options{Addr: server.Addr()})
		b.Cleanup(func() { _ = c.Close() })
		return server.URL(), func() int64 { return info(b, c, "stats", "total_reads_processed") }
	}},
}

// fillTopic registers due jobs in a paused topic, in batches.
func fillTopic(b *testing.B, p *process, topic, url string, lanes int) {
	b.Helper()
	call[obj](b, p, http.MethodPut, "/v1/topics/"+topic,
		obj{"lane_concurrency": benchWorkers, "workers": benchWorkers, "paused": true}, http.StatusOK)
	const batch = 5000
	for start := 0; start < benchJobs; start += batch {
		var text bytes.Buffer
		text.WriteString(`{"jobs":[`)
		for i := range batch {
			if i > 0 {
				text.WriteByte(',')
			}
			fmt.Fprintf(&text, `{"topic":%q,"url":%q,"lane":"lane-%d","body":%s}`, topic, url, (start+i)%lanes, benchBody)
		}
		text.WriteString(`]}`)
		status, answer, err := send(p.url, http.MethodPost, "/v1/batch", text.String())
		require.NoError(b, err)
		require.Equal(b, http.StatusOK, status, "%s", answer)
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// BenchmarkDeliveries times 50,000 due jobs from the moment their topic is resumed, beside the bare loop.
func BenchmarkDeliveries(b *testing.B) {
	for _, e := range benchEngines {
		for _, lanes := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/lanes=%d", e.name, lanes), func(b *testing.B) {
				store, trips := e.open(b)
				s, p := newSink(b), start(b, store)
				var ratios, rates, perJob []float64
				for b.Loop() {
					for range benchRounds {
						limit := bare(b, s.URL)
						topic := "bench-" + strconv.Itoa(len(ratios))
						fillTopic(b, p, topic, s.URL, lanes)
						s.reset()
						var before int64
						if trips != nil {
							before = trips()
						}
						began := time.Now()
						call[obj](b, p, http.MethodPost, "/v1/topics/"+topic+"/resume", nil, http.StatusOK)
						s.reached(b, benchJobs)
						took := time.Since(began)
						rates = append(rates, benchJobs/took.Seconds())
						ratios = append(ratios, limit.Seconds()/took.Seconds())
						if trips != nil {
							perJob = append(perJob, float64(trips()-before)/benchJobs)
						}
					}
				}
				b.ReportMetric(median(rates), "jobs/s")
				b.ReportMetric(median(ratios), "of-bare-loop")
				if len(perJob) > 0 {
					b.ReportMetric(median(perJob), "redis-trips/job")
				}
			})
		}
	}
}

// BenchmarkLateness registers 500 jobs a second, each due at a random millisecond of the next two seconds, and shows how
// late they arrive.
func BenchmarkLateness(b *testing.B) {
	for _, e := range benchEngines {
		b.Run(e.name, func(b *testing.B) {
			store, _ := e.open(b)
			s, p := newSink(b), start(b, store)
			const rate, seconds = 500, 10
			for b.Loop() {
				s.reset()
				var posts sync.WaitGroup
				tick := time.NewTicker(time.Second / rate)
				for range rate * seconds {
					<-tick.C
					posts.Go(func() {
						status, answer, err := send(p.url, http.MethodPost, "/v1/jobs", obj{
							"topic": "late", "url": s.URL, "body": obj{"x": 1}, "delay": fmt.Sprintf("%dms", 500+rand.IntN(2000)),
						})
						if err != nil || status != http.StatusCreated {
							b.Errorf("%d %s %v", status, answer, err)
						}
					})
				}
				tick.Stop()
				posts.Wait()
				s.reached(b, rate*seconds)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			slices.Sort(s.late)
			require.GreaterOrEqual(b, s.late[0], time.Duration(0), "a job came early")
			at := func(q float64) float64 {
				return float64(s.late[int(q*float64(len(s.late)-1))].Microseconds()) / 1000
			}
			b.ReportMetric(at(0.5), "p50-ms")
			b.ReportMetric(at(0.99), "p99-ms")
			b.ReportMetric(at(1), "max-ms")
		})
	}
}

// BenchmarkIdle counts the round trips to Redis of a process that has 1,000 topics and nothing due.
func BenchmarkIdle(b *testing.B) {
	store, trips := benchEngines[1].open(b)
	p := start(b, store)
	var text bytes.Buffer
	text.WriteString(`{"jobs":[`)
	for i := range 1000 {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"topic":"idle-%d","url":"http://127.0.0.1:9","delay":"1h"}`, i)
	}
	text.WriteString(`]}`)
	status, answer, err := send(p.url, http.MethodPost, "/v1/batch", text.String())
	require.NoError(b, err)
	require.Equal(b, http.StatusOK, status, "%s", answer)
	const watch = 10 * time.Second
	for b.Loop() {
		before := trips()
		time.Sleep(watch)
		b.ReportMetric(float64(trips()-before-1)/watch.Seconds(), "redis-trips/s")
	}
}
