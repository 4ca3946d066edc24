package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// screen records the output of a command.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write is called by os/exec.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(text)
}

// with returns the lines that contain a text.
func (s *screen) with(text string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for line := range strings.Lines(s.text.String()) {
		if strings.Contains(line, text) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// shows waits until n lines contain a text, and returns them.
func (s *screen) shows(t *testing.T, text string, n int) []string {
	t.Helper()
	eventually(t, func() bool { return len(s.with(text)) >= n }, "%d lines with %q", n, text)
	return s.with(text)
}

// dev runs ringback dev on free ports.
func dev(t *testing.T, store string, flags ...string) (*process, *screen) {
	t.Helper()
	var s screen
	args := append([]string{"dev", "--addr=127.0.0.1:0", "--inbox=127.0.0.1:0", "--store=" + store, "--log=json"},
		flags...)
	return launch(t, &s, args...), &s
}

func TestDev_DeliversASampleAndStopsCleanly(t *testing.T) {
	t.Parallel()
	store := newSQLite(t)
	p, s := dev(t, store)
	for n, line := range s.shows(t, "POST /flaky  id sample", 3) {
		require.Contains(t, line, []string{"attempt 1  → 500", "attempt 2  → 500", "attempt 3  → 200"}[n])
		require.Contains(t, line, `{"hello": "from the sample job"}`)
	}
	require.Len(t, s.shows(t, "try   curl "+p.url+"/v1/jobs --json", 1), 1)
	require.Equal(t, 3, await(t, p, "sample", "delivered").AttemptsMade)
	code, _ := p.terminate()
	require.Zero(t, code)

	p, s = dev(t, store)
	s.shows(t, "try   curl", 1) // printed after the sample would have been registered
	require.Empty(t, s.with("a sample job"))
	require.EqualValues(t, 1, count(t, p).Registered, "no second sample")
	code, _ = p.terminate()
	require.Zero(t, code)
	require.Empty(t, s.with("inbox  POST"), "nor is the first one sent again")
}

func TestDev_PrintsCallableAddresses(t *testing.T) {
	t.Parallel()
	_, s := dev(t, newSQLite(t), "--addr=0.0.0.0:0", "--inbox=0.0.0.0:0", "--no-auth")
	require.Contains(t, s.shows(t, "try   curl", 1)[0], "curl http://127.0.0.1:")
	s.shows(t, "POST /flaky  id sample", 1)
	require.Empty(t, s.with("0.0.0.0"))
}

func TestTopics_DeclaredRejectsUnknownTopics(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	p := start(t, newSQLite(t), "--topics=declared")
	job := obj{"id": "a", "topic": "orders", "url": r.URL + "/ok"}
	problem := call[struct{ Errors []struct{ Field string } }](t, p, http.MethodPost, "/v1/jobs", job,
		http.StatusUnprocessableEntity)
	require.Len(t, problem.Errors, 1)
	require.Equal(t, "/topic", problem.Errors[0].Field)
	call[obj](t, p, http.MethodPut, "/v1/topics/orders", obj{}, http.StatusOK)
	register(t, p, job)
	await(t, p, "a", "delivered")
}
