package notify

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
)

// BenchmarkDeliver compares attempts with a plain net/http client that sends the same requests to the same receiver.
// The third part alternates the two and reports the ratio: 1 is as fast.
func BenchmarkDeliver(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	}))
	b.Cleanup(server.Close)
	req := newRequest(server.URL + "/hooks/close")
	req.Body = []byte(`{"order":4711,"note":"` + strings.Repeat("x", 200) + `"}`)
	s := newSender(b, Options{})
	deliver := func(b *testing.B) {
		if result := s.Deliver(b.Context(), req); result.Status != http.StatusOK {
			b.Fatal(result.Error)
		}
	}
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 256},
	}
	b.Cleanup(client.CloseIdleConnections)
	bare := func(b *testing.B) { post(b, client, req) }

	for name, one := range map[string]func(*testing.B){"notify": deliver, "bare": bare} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				one(b)
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					one(b)
				}
			})
		})
	}
	b.Run("ratio", func(b *testing.B) {
		var ours, theirs time.Duration
		for b.Loop() {
			began := time.Now()
			deliver(b)
			between := time.Now()
			bare(b)
			ours, theirs = ours+between.Sub(began), theirs+time.Since(between)
		}
		b.ReportMetric(float64(theirs)/float64(ours), "bare/notify")
	})
}

// post sends the request of Deliver with plain net/http.
func post(tb testing.TB, client *http.Client, req job.Request) {
	r, err := http.NewRequestWithContext(tb.Context(), req.Method, req.URL, bytes.NewReader(req.Body))
	require.NoError(tb, err)
	r.Header["Content-Type"] = []string{req.ContentType}
	r.Header["Webhook-Id"] = []string{req.Ref.ID}
	resp, err := client.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		tb.Fatal(resp.StatusCode, err)
	}
}
