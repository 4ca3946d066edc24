package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// benchWorkers is the number of workers per process.
const benchWorkers = 64

// benchBody is the body of each job: 256 bytes of JSON.
var benchBody = `{"order":4711,"note":"` + strings.Repeat("x", 256-24) + `"}`

// benchForms are the stores that several processes can share.
var benchForms = []struct {
	name string
	url  func(b *testing.B) string
}{
	{"redis", func(b *testing.B) string { return redistest.Start(b).URL() }},
	{"cluster", func(b *testing.B) string { return redistest.StartCluster(b, 3, 0).URL() }},
}

// BenchmarkProcesses measures the delivery of a backlog from the resume of its topic, with 1, 2 and 4 processes on one
// store, and reports the ratio to one process. With slow receivers (50 ms) workers are the limit; with fast ones the
// CPU, which the receiver and Redis share.
func BenchmarkProcesses(b *testing.B) {
	for _, receiver := range []struct {
		name  string
		takes time.Duration
		jobs  int
	}{{"slow", 50 * time.Millisecond, 10_000}, {"quick", 0, 50_000}} {
		for _, form := range benchForms {
			b.Run(receiver.name+"/"+form.name, func(b *testing.B) {
				store := form.url(b)
				r := newCounter(b, receiver.takes)
				var processes []*process
				rates := map[int]float64{}
				for b.Loop() {
					for _, n := range []int{1, 2, 4} {
						for len(processes) < n {
							processes = append(processes, start(b, store))
						}
						rates[n] = r.rate(b, processes, fmt.Sprintf("scale-%d-%d", n, b.N), receiver.jobs)
					}
					for _, p := range processes[1:] {
						p.kill()
					}
					processes = processes[:1]
				}
				b.ReportMetric(rates[1], "jobs/s-of-1")
				b.ReportMetric(rates[2]/rates[1], "2-to-1")
				b.ReportMetric(rates[4]/rates[1], "4-to-1")
			})
		}
	}
}

// counter is a slow receiver that counts.
type counter struct {
	*httptest.Server
	count atomic.Int64
}

func newCounter(b *testing.B, takes time.Duration) *counter {
	c := &counter{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if takes > 0 {
			time.Sleep(takes)
		}
		c.count.Add(1)
	}))
	b.Cleanup(c.Close)
	return c
}

// rate returns the deliveries per second of the processes, over 100 lanes.
func (c *counter) rate(b *testing.B, processes []*process, topic string, jobs int) float64 {
	b.Helper()
	call[obj](b, processes[0], http.MethodPut, "/v1/topics/"+topic, obj{"workers": benchWorkers}, http.StatusOK)
	call[obj](b, processes[0], http.MethodPost, "/v1/topics/"+topic+"/pause", nil, http.StatusOK)
	const batch = 5000
	for start := 0; start < jobs; start += batch {
		var text bytes.Buffer
		text.WriteString(`{"jobs":[`)
		for i := range batch {
			if i > 0 {
				text.WriteByte(',')
			}
			fmt.Fprintf(&text, `{"topic":%q,"url":%q,"lane":"lane-%d","body":%s}`, topic, c.URL,
				(start+i)%100, benchBody)
		}
		text.WriteString(`]}`)
		status, answer, err := send(processes[0].url, http.MethodPost, "/v1/batch", text.String())
		require.NoError(b, err)
		require.Equal(b, http.StatusOK, status, "%s", answer)
	}
	c.count.Store(0)
	began := time.Now()
	call[obj](b, processes[0], http.MethodPost, "/v1/topics/"+topic+"/resume", nil, http.StatusOK)
	for c.count.Load() < int64(jobs) {
		require.Less(b, time.Since(began), 5*time.Minute, "%d of %d requests came", c.count.Load(), jobs)
		time.Sleep(time.Millisecond)
	}
	return float64(jobs) / time.Since(began).Seconds()
}
