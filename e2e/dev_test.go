package e2e

import (
	"net/http"
	"os/exec"
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
	require.Len(t, s.shows(t, "try   curl "+p.url+"/v1/jobs -H", 1), 1)
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

func TestDev_ShowsAReceiverThatFailsAndRecovers(t *testing.T) {
	t.Parallel()
	p, s := dev(t, newSQLite(t))
	_, url, _ := strings.Cut(s.shows(t, "inbox at http://", 1)[0], "inbox at ")
	url, _, _ = strings.Cut(url, " ")
	ringback := func(args ...string) (output string, code int) {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env = cleanEnv("RINGBACK_SERVER="+p.url, "RINGBACK_OUTPUT=table", "HOME="+t.TempDir())
		text, _ := cmd.Output()
		return string(text), cmd.ProcessState.ExitCode()
	}
	register(t, p, obj{
		"id": "broken", "lane": "crm", "url": url + "status/500", "ladder": []string{"1s", "1s", "1h"},
	})
	eventually(t, func() bool { return get(t, p, "broken").AttemptsMade == 3 }, "it is not attempted three times")
	output, code := ringback("lane", "list", "--failing")
	require.Zero(t, code)
	require.Regexp(t, `(?m)^default +crm +failing .* 500 `, output)
	output, code = ringback("check", "--failing", "50%,90%")
	require.Equal(t, 2, code, output)
	require.Contains(t, output, "failing 100% of lane crm of default (CRITICAL)")
	require.Equal(t, "1", metric(t, p, `ringback_lanes_failing{namespace="default",topic="default"}`))

	call[view](t, p, http.MethodPatch, "/v1/jobs/broken", obj{"url": url, "delay": "0s"}, http.StatusOK)
	await(t, p, "broken", "delivered")
	output, code = ringback("lane", "list", "--failing")
	require.Zero(t, code)
	require.NotContains(t, output, "crm")
	output, code = ringback("check", "--failing", "50%,90%")
	require.Zero(t, code, output)
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
