package e2e

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkWatchedDeliveries measures the delivery of a backlog while nobody watches /v1/stream, and while clients do:
// one that wants all events, one that wants those of another topic, and as many as a namespace may have.
//
//	go test ./e2e -run '^$' -bench WatchedDeliveries -benchtime 3x -count 5
func BenchmarkWatchedDeliveries(b *testing.B) {
	const jobs = 50_000
	for _, engine := range benchEngines {
		for _, watched := range []struct {
			name    string
			query   string
			clients int
		}{{"nobody", "", 0}, {"all", "", 1}, {"another topic", "?topic=other", 1}, {"8 clients", "", 8}} {
			b.Run(engine.name+"/"+watched.name, func(b *testing.B) {
				p, r := start(b, engine.open(b)), newCounter(b, 0)
				for range watched.clients {
					req, err := http.NewRequestWithContext(b.Context(), http.MethodGet,
						p.url+"/v1/stream"+watched.query, nil)
					require.NoError(b, err)
					resp, err := new(http.Client).Do(req) // without a timeout
					require.NoError(b, err)
					require.Equal(b, http.StatusOK, resp.StatusCode)
					b.Cleanup(func() { _ = resp.Body.Close() })
					go func() { _, _ = io.Copy(io.Discard, resp.Body) }()
				}
				var sum float64
				n := 0
				for b.Loop() {
					n++
					sum += r.rate(b, []*process{p}, fmt.Sprintf("watched-%d", n), jobs)
				}
				b.ReportMetric(sum/float64(n), "jobs/s")
			})
		}
	}
}
