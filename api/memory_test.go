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
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// heapMeasuringService is a fast service that samples the heap.
type heapMeasuringService struct {
	fastService
	mu    sync.Mutex
	jobs  int
	next  int
	every int // jobs
	heaps []uint64
}

func (m *heapMeasuringService) FindStore(context.Context, string) (Store, error) { return m, nil }

func (m *heapMeasuringService) Register(ctx context.Context, jobs []job.New) []store.RoutedResult {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs += len(jobs); m.jobs >= m.next {
		m.next += m.every
		m.heaps = append(m.heaps, heap())
	}
	return m.fastService.Register(ctx, jobs)
}

// heap returns the bytes in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// repeated reads a text n times.
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

// lineCounter is a response that counts lines.
type lineCounter struct {
	header http.Header
	lines  int
}

func (c *lineCounter) Header() http.Header { return c.header }
func (*lineCounter) WriteHeader(int)       {}

func (c *lineCounter) Write(b []byte) (int, error) {
	c.lines += strings.Count(string(b), "\n")
	return len(b), nil
}

func TestStream_UsesBoundedMemory(t *testing.T) {
	const large = 100 << 10
	jobs := testkit.Of(360, 600) // 36 MiB
	m := &heapMeasuringService{fastService: fastService{newFake()}, every: jobs / 10}
	body := &repeated{text: `{"id": "a", "body_text": "` + strings.Repeat("x", large) + "\"}\n", n: jobs}
	r := httptest.NewRequest(http.MethodPost, "/v1/batch", body)
	r.Header.Set("Content-Type", request.ContentTypeNDJSON)
	w := &lineCounter{header: make(http.Header)}
	before := heap()
	handlerOf(m).ServeHTTP(w, r)
	require.Equal(t, jobs, w.lines)
	require.Equal(t, jobs, m.jobs)
	require.GreaterOrEqual(t, len(m.heaps), 5)
	for _, h := range m.heaps {
		require.Less(t, h, before+24<<20, "the heap, from %d B: %v", before, m.heaps)
	}
}
