package app

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// status makes one request and returns the response's status, 0 without a response.
func status(t *testing.T, a *App, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet,
		"http://"+a.Addr()+path, http.NoBody)
	require.NoError(t, err)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return 0
	}
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// send makes one request with JSON on a separate connection, which may be used again.
func send(t *testing.T, a *App, method, path, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method,
		"http://"+a.Addr()+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	client := new(http.Transport)
	t.Cleanup(client.CloseIdleConnections)
	resp, err := client.RoundTrip(req)
	if !assert.NoError(t, err) { // not require: in any goroutine
		return new(http.Response)
	}
	assert.NoError(t, resp.Body.Close())
	return resp
}

func TestDrain_ServesWhileUnready(t *testing.T) {
	o := testOptions(t)
	o.Grace, o.Drain = time.Hour, 30*time.Minute // the drain ends with the server
	a, err := New(t.Context(), o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	becomes := func(want int) func() bool { return func() bool { return status(t, a, "/readyz") == want } }
	require.Eventually(t, becomes(http.StatusOK), testkit.MustCome, time.Millisecond)
	send(t, a, http.MethodPut, "/v1/topics/pulled", `{"deliver": "pull"}`)
	var waiting sync.WaitGroup
	for path, body := range map[string]string{
		"/v1/jobs?wait=60s":       `{"url": "http://127.0.0.1:1/", "delay": "1h"}`,
		"/v1/topics/pulled/lease": `{"wait": "60s"}`,
	} {
		waiting.Go(func() {
			resp := send(t, a, http.MethodPost, path, body)
			assert.True(t, resp.Close, path)
			assert.Less(t, resp.StatusCode, 300)
		})
	}
	wait := func() bool { return a.service.Waiting() == 1 && a.service.LeaseClients() == 1 }
	require.Eventually(t, wait, testkit.MustCome, time.Millisecond)
	began := time.Now()
	cancel()
	waiting.Wait()
	require.Less(t, time.Since(began), 55*time.Second, "those who wait are answered before their time")
	require.Eventually(t, becomes(http.StatusServiceUnavailable), testkit.MustCome, time.Millisecond)
	require.Equal(t, http.StatusOK, status(t, a, "/v1/stats"))
	require.Empty(t, done)
	require.NoError(t, a.listener.Close())
	require.NoError(t, <-done)
	require.Zero(t, status(t, a, "/healthz"), "the port is closed")
}

func TestDrain_LastsUntilTheServerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &App{options: Options{Drain: 5 * time.Second}}
		served := make(chan struct{})
		began := time.Now()
		a.drain(served)
		require.Equal(t, 5*time.Second, time.Since(began))
		time.AfterFunc(time.Second, func() { close(served) })
		a.drain(served)
		require.Equal(t, 6*time.Second, time.Since(began))
	})
}

func TestDrain_IsSkippedAfterAFailure(t *testing.T) {
	o := testOptions(t)
	o.Grace, o.Drain = time.Hour, 30*time.Minute
	a, err := New(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, a.listener.Close())
	began := time.Now()
	require.ErrorContains(t, a.Run(t.Context()), "serve the API")
	require.Less(t, time.Since(began), o.Drain)
}

func TestDrain_EndsWithTheServer(t *testing.T) {
	o := testOptions(t)
	o.Grace, o.Drain = time.Hour, 30*time.Minute
	a, err := New(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, a.listener.Close())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	require.NoError(t, a.Run(ctx))
	require.Less(t, time.Since(began), o.Drain)
}
