package api

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// weighed is a service that takes no time and measures the heap now and then.
type weighed struct {
	instantly
	mu    sync.Mutex
	jobs  int
	next  int
	every int // jobs
	heaps []uint64
}

func (m *weighed) Register(ctx context.Context, jobs []job.New) []store.RoutedResult {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs += len(jobs); m.jobs >= m.next {
		m.next += m.every
		m.heaps = append(m.heaps, heap())
	}
	return m.instantly.Register(ctx, jobs)
}

// heap is what is in use after a collection, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// repeated reads a text n times over.
type repeated struct {
	text, rest string
	n          int
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.rest == "" {
		if r.n == 0 {
			return 0, io.EOF
		}
		r.n--
		r.rest = r.text
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// counted is an answer of which only the lines are counted.
type counted struct {
	header http.Header
	lines  int
}

func (c *counted) Header() http.Header { return c.header }
func (*counted) WriteHeader(int)       {}

func (c *counted) Write(b []byte) (int, error) {
	c.lines += strings.Count(string(b), "\n")
	return len(b), nil
}

func TestStream_UsesBoundedMemory(t *testing.T) {
	const large, jobs = 100 << 10, 600 // 60 MiB
	m := &weighed{instantly: instantly{newFake()}, every: jobs / 10}
	body := &repeated{text: `{"id": "a", "body_text": "` + strings.Repeat("x", large) + "\"}\n", n: jobs}
	r := httptest.NewRequest(http.MethodPost, "/v1/batch", body)
	r.Header.Set("Content-Type", request.ContentTypeNDJSON)
	w := &counted{header: make(http.Header)}
	before := heap()
	handlerOf(m).ServeHTTP(w, r)
	require.Equal(t, jobs, w.lines)
	require.Equal(t, jobs, m.jobs)
	require.GreaterOrEqual(t, len(m.heaps), 5)
	for _, h := range m.heaps {
		require.Less(t, h, before+24<<20, "the heap, from %d B: %v", before, m.heaps)
	}
}
