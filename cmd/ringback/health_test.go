package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/inbox"
)

// healthServer responds to /healthz with 200 and to /readyz with status and body. It returns its address.
func healthServer(t *testing.T, status int, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			fmt.Fprint(w, `{"status": "alive"}`)
		case "/readyz":
			w.Header().Set("Location", "/healthz")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		default:
			t.Errorf("an unexpected request of %s", r.URL.Path)
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestHealth_ChecksReadinessByDefault(t *testing.T) {
	ready := healthServer(t, http.StatusOK, `{"status": "ready"}`)
	code, stdout, stderr := try(t, nil, "health", "--addr="+ready)
	require.Equal(t, []any{exitOK, "ready\n", ""}, []any{code, stdout, stderr})

	unready := healthServer(t, http.StatusServiceUnavailable,
		`{"status": 503, "detail": "not ready: the store\ndoes not answer"}`)
	code, stdout, stderr = try(t, nil, "health", "--addr="+unready)
	require.Equal(t, []any{exitFault, ""}, []any{code, stdout})
	require.Equal(t, "ringback: GET http://"+unready+
		"/readyz: 503 Service Unavailable: not ready: the store\\ndoes not answer\n", stderr)

	code, stdout, stderr = try(t, nil, "health", "--live", "--addr="+unready)
	require.Equal(t, []any{exitOK, "alive\n", ""}, []any{code, stdout, stderr})
}

func TestHealth_FailsOnAnyStatusBut200(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   string
	}{
		{http.StatusFound, "", "302 Found"},
		{http.StatusNoContent, "", "204 No Content"},
		{http.StatusInternalServerError, "<html>" + strings.Repeat("x", 1<<20), "500 Internal Server Error"},
		{http.StatusServiceUnavailable, `{"detail": ""}`, "503 Service Unavailable"},
	} {
		addr := healthServer(t, c.status, c.body)
		code, _, stderr := try(t, nil, "health", "--addr="+addr)
		require.Equal(t, exitFault, code)
		require.Equal(t, "ringback: GET http://"+addr+"/readyz: "+c.want+"\n", stderr)
	}
}

func TestHealth_ReadsServesAddressVariable(t *testing.T) {
	_, port, err := net.SplitHostPort(healthServer(t, http.StatusOK, `{"status": "ready"}`))
	require.NoError(t, err)
	for _, host := range []string{"", "0.0.0.0", "[::]", "127.0.0.1"} {
		env := []string{
			"RINGBACK_ADDR=" + host + ":" + port, "RINGBACK_STORE=redis://redis:6379/0", "RINGBACK_TOKEN=secret",
			"RINGBACK_GRACE=30s", "RINGBACK_LOG=json", "RINGBACK_ALLOW_TARGETS=10.0.0.0/8",
		}
		code, stdout, stderr := try(t, env, "health")
		require.Equal(t, []any{exitOK, "ready\n", ""}, []any{code, stdout, stderr}, host)
	}
}

func TestHealth_PrintsConnectionErrorsOnOneLine(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	silent := listener.Addr().String() // connections are taken by the system and never answered
	code, _, stderr := try(t, nil, "health", "--addr="+silent, "--timeout=50ms")
	require.Equal(t, exitFault, code)
	require.Equal(t, "ringback: GET http://"+silent+"/readyz: no response within 50ms\n", stderr)

	require.NoError(t, listener.Close())
	_, port, err := net.SplitHostPort(silent)
	require.NoError(t, err)
	for _, host := range []string{"127.0.0.1", "", "0.0.0.0", "[::]"} { // all are called on loopback
		code, _, stderr = try(t, nil, "health", "--addr="+host+":"+port)
		require.Equal(t, exitFault, code)
		require.Contains(t, stderr, "ringback: GET http://"+silent+"/readyz: dial tcp "+silent)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
}

func TestHealth_FailsOnA200OfAnotherServer(t *testing.T) {
	for _, body := range []string{
		"", "ready", `{"status": "alive"}`, `{"status": true}`, `"ready"`,
		`{"detail": "` + strings.Repeat("x", maxHealthBody) + `", "status": "ready"}`,
	} {
		addr := healthServer(t, http.StatusOK, body)
		code, stdout, stderr := try(t, nil, "health", "--addr="+addr)
		require.Equal(t, []any{exitFault, ""}, []any{code, stdout}, body)
		require.Equal(t, "ringback: GET http://"+addr+
			"/readyz: 200 OK without status \"ready\": the server is not Ringback\n", stderr)
	}

	in, err := inbox.Open(t.Context(), "127.0.0.1:0", "", io.Discard)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- in.Serve() }()
	for _, args := range [][]string{nil, {"--live"}} {
		code, stdout, stderr := try(t, nil, append([]string{"health", "--addr=" + in.Addr()}, args...)...)
		require.Equal(t, []any{exitFault, ""}, []any{code, stdout})
		require.Contains(t, stderr, "the server is not Ringback")
	}
	in.Close()
	require.NoError(t, <-served)
}

func TestHealth_RetriesDuringItsWait(t *testing.T) {
	var asked atomic.Int32
	starting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, `{"status": "ready"}`)
	}))
	t.Cleanup(starting.Close)
	addr := "--addr=" + starting.Listener.Addr().String()
	code, _, _ := try(t, nil, "health", addr)
	require.Equal(t, exitFault, code)
	require.Equal(t, int32(1), asked.Load(), "no retry without --wait")
	code, stdout, stderr := try(t, []string{"RINGBACK_HEALTH_WAIT=1m"}, "health", addr)
	require.Equal(t, []any{exitOK, "ready\n", ""}, []any{code, stdout, stderr})
	require.Equal(t, int32(4), asked.Load())
}

func TestHealth_PrintsTheLastErrorAfterItsWait(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())

	began := time.Now()
	code, _, stderr := try(t, nil, "health", "--addr="+addr, "--wait=250ms")
	require.Equal(t, exitFault, code)
	require.Greater(t, time.Since(began), 250*time.Millisecond-healthInterval)
	require.Contains(t, stderr, "ringback: GET http://"+addr+"/readyz: dial tcp "+addr, "the last error")
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
}

func TestHealth_EndsItsWaitWithTheContext(t *testing.T) {
	stopping, cancel := context.WithCancelCause(t.Context())
	asked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		cancel(errStopped)
	}))
	t.Cleanup(asked.Close)
	began := time.Now()
	code := run(stopping, []string{"health", "--wait=10m", "--addr=" + asked.Listener.Addr().String()},
		io.Discard, io.Discard, nil)
	require.Equal(t, exitFault, code)
	require.Less(t, time.Since(began), time.Minute)
}

func TestHealth_RejectsInvalidFlags(t *testing.T) {
	for arg, want := range map[string]string{
		"--addr=8080":    `addr: "8080" is not host:port`,
		"--addr=a b:123": `addr: "a b:123" is not host:port`,
		"--timeout=0s":   "timeout: 0s is not above 0s and at most 1m0s",
		"--timeout=-1s":  "timeout: -1s is not above",
		"--timeout=61s":  "timeout: 1m1s is not above",
		"--wait=-1s":     "wait: -1s is not between 0s and 10m0s",
		"--wait=11m":     "wait: 11m0s is not between",
	} {
		code, stdout, stderr := try(t, nil, "health", arg)
		require.Equal(t, exitUsage, code, arg)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "ringback: "+want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
	code, _, _ := try(t, nil, "health", "--timeout=soon")
	require.Equal(t, exitUsage, code)
}

func TestHealth_HasItsOwnVariables(t *testing.T) {
	_, stdout, _ := try(t, nil, "health", "--help")
	for _, name := range []string{
		"$RINGBACK_ADDR)", "$RINGBACK_HEALTH_LIVE)", "$RINGBACK_HEALTH_TIMEOUT)", "$RINGBACK_HEALTH_WAIT)",
	} {
		require.Contains(t, stdout, name)
	}
	_, _, stderr := try(t, []string{"RINGBACK_TIMEOUT=5s"}, "config")
	require.Contains(t, stderr, "variables=[RINGBACK_TIMEOUT]")
}
