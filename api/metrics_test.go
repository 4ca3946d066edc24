package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/access"
	"github.com/ringback/ringback/internal/redact"
)

func TestMetrics_NeedNoTokenInAnyRole(t *testing.T) {
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, "ringback_jobs 1\n")
	})
	for _, only := range []bool{false, true} {
		h := New(Options{Service: newFake(), Metrics: metrics, HealthOnly: only, Access: access.Options{Tokens: []redact.Text{"right"}, Loopback: true}})
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
