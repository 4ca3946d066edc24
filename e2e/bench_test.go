package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringback/ringback/internal/redistest"
)

// Benchmarks of the binary without comparison to others. Run them with: make microbench PKG=./e2e
// The module bench compares throughput, lateness and memory with other products.

// sink is a receiver that counts requests and records how late each was.
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

// reached waits for n requests.
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

// benchEngines are the stores of benchmarks.
var benchEngines = []struct {
	name string
	open func(b *testing.B) string
}{
	{"sqlite", func(b *testing.B) string { return "sqlite:" + filepath.Join(b.TempDir(), "ringback.db") }},
	{"redis", func(b *testing.B) string { return redistest.Start(b).URL() }},
}
