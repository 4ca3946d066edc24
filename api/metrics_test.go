package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/store"
)

func TestMetrics_NeedNoTokenInAnyRole(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, "ringback_jobs 1\n")
	})
	for _, only := range []bool{false, true} {
		h := New(Options{
			Service: newFake(), Metrics: metrics, HealthOnly: only,
			Access: AccessOptions{Tokens: []logs.Secret{"right"}, Loopback: true},
		})
		ask := func(host string, more ...string) *httptest.ResponseRecorder {
			return call(t, h, http.MethodGet, "http://"+host+"/metrics", "", more...)
		}
		w := ask("localhost:8080")
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, "ringback_jobs 1\n", w.Body.String())
		require.Equal(t, http.StatusForbidden, ask("evil.example").Code, "the guard of hosts holds")
		require.Equal(t, http.StatusForbidden, ask("localhost", "Ringback-Attempt", "1").Code, "a job cannot read them")
	}
	w := call(t, handlerOf(newFake()), http.MethodGet, "/metrics", "")
	require.Equal(t, http.StatusNotFound, w.Code)
	problemIn(t, w)
}

func TestMetrics_RequireTheirTokenIfThereIsOne(t *testing.T) {
	metrics := http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ringback_jobs 1\n") },
	)
	f := newFake()
	f.failed = &store.UnavailableError{Reason: "away"} // no store is asked
	for _, only := range []bool{false, true} {
		h := New(Options{Service: f, Metrics: metrics, HealthOnly: only, Logger: quiet, Access: AccessOptions{
			Tokens: []logs.Secret{"root"}, MetricsTokens: []logs.Secret{"new", "old"},
		}})
		for sent, status := range map[string]int{
			"": 401, "Bearer wrong": 401, "Basic new": 401, "Bearer " + fakeToken: 401, "Bearer new": 200,
			"Bearer old": 200, "Bearer root": 200,
		} {
			var header []string
			if sent != "" {
				header = []string{"Authorization", sent}
			}
			w := call(t, h, http.MethodGet, "/metrics", "", header...)
			require.Equal(t, status, w.Code, sent)
			if status == http.StatusUnauthorized {
				require.NotContains(t, w.Body.String(), "ringback_jobs")
				require.NotEmpty(t, w.Header().Get("WWW-Authenticate"))
			}
		}
		require.Equal(t, http.StatusUnauthorized,
			call(t, h, http.MethodGet, "/v1/version", "", "Authorization", "Bearer new").Code, "it does nothing else")
		require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/healthz", "").Code)
	}
}
