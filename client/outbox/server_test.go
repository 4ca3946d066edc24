package outbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

// server answers batches as Ringback does, without a network.
type server struct {
	mu       sync.Mutex
	ids      []string          // of registered jobs, in order; a repeated job is there again
	jobs     map[string]string // the newest JSON by id
	batches  []int             // the numbers of jobs
	largest  int               // bytes of a request
	problems map[string]*client.Problem

	// before, if it is not nil, is called before a batch is registered. It may return another answer.
	before func(ids []string) (*http.Response, error)
	// after, if it is not nil, may replace the answer of a batch that was registered.
	after func() (*http.Response, error)
}

func newServer() *server {
	return &server{jobs: make(map[string]string), problems: make(map[string]*client.Problem)}
}

// client returns a client of the server.
func (s *server) client(t testing.TB) *client.Client {
	t.Helper()
	c, err := client.New("http://ringback.test", client.Options{HTTP: &http.Client{Transport: s}})
	require.NoError(t, err)
	return c
}

// RoundTrip registers a batch.
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if req.Method != http.MethodPost || req.URL.Path != "/v1/batch" {
		return answer(http.StatusNotFound, client.Problem{Code: "not_found"}), nil
	}
	var batch struct{ Jobs []json.RawMessage }
	if json.Unmarshal(text, &batch) != nil {
		//nolint:nilerr // the answer says it
		return answer(http.StatusBadRequest, client.Problem{Code: "invalid_json"}), nil
	}
	ids := make([]string, len(batch.Jobs))
	for i, raw := range batch.Jobs {
		id, _, _ := bytes.Cut(bytes.TrimPrefix(raw, []byte(`{"id":"`)), []byte(`"`)) // the first member
		ids[i] = string(id)
	}
	s.mu.Lock()
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if res, err := before(ids); res != nil || err != nil {
			return res, err
		}
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	results := s.register(ids, batch.Jobs, len(text))
	if after != nil {
		if res, err := after(); res != nil || err != nil {
			return res, err
		}
	}
	return answer(http.StatusOK, map[string]any{"results": results}), nil
}

// register registers jobs, and returns their results.
func (s *server) register(ids []string, jobs []json.RawMessage, size int) []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches, s.largest = append(s.batches, len(ids)), max(s.largest, size)
	results := make([]any, len(ids))
	for i, id := range ids {
		result := map[string]any{"index": i, "id": id, "status": http.StatusCreated, "durability": nil, "error": nil}
		if p := s.problems[id]; p != nil {
			result["status"], result["error"] = p.Status, p
		} else {
			s.ids, s.jobs[id] = append(s.ids, id), string(jobs[i])
		}
		results[i] = result
	}
	return results
}

func answer(status int, body any) *http.Response {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: status, Header: make(http.Header), Body: io.NopCloser(bytes.NewReader(text))}
}

func (s *server) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// batchSizes returns the number of jobs of each request.
func (s *server) batchSizes() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches)
}

// registered returns the ids of the jobs that were registered, in order.
func (s *server) registered() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ids)
}

// awaitRegistered waits until n registrations were made.
func (s *server) awaitRegistered(t testing.TB, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.registered()) >= n }, 5*time.Minute, time.Millisecond)
}

// numbered returns jobs with the ids NAME-0, NAME-1, …
func numbered(name string, n int) []client.Job {
	all := make([]client.Job, n)
	for i := range all {
		all[i] = client.Job{ID: fmt.Sprintf("%s-%d", name, i), URL: "https://shop.example/close", Body: i}
	}
	return all
}

func idsOf(jobs []client.Job) []string {
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	return ids
}
