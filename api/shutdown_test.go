package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/logs"
)

func TestNotFound_NamesTheRoleToUseInAProcessThatOnlyDelivers(t *testing.T) {
	f := newFake()
	h := New(Options{Service: f, HealthOnly: true, Access: AccessOptions{Tokens: []logs.Secret{"right"}}})
	auth := []string{"Authorization", "Bearer right"}
	for _, path := range []string{"/healthz", "/readyz", "/v1/version", "/openapi.yaml"} {
		require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, path, "", auth...).Code, path)
	}
	for _, target := range []string{
		"POST /v1/jobs", "GET /v1/jobs", "POST /v1/batch", "GET /v1/jobs/a", "DELETE /v1/jobs/a", "POST /v1/jobs/a/run",
		"GET /v1/topics", "PUT /v1/topics/a", "GET /v1/stats", "GET /v1/dead", "POST /v1/topics/a/secrets",
		"PUT /v1/topics/a/lanes/b", "GET /v1/nothing", "GET /v1/", "GET /v1",
	} {
		method, path, _ := strings.Cut(target, " ")
		w := call(t, h, method, path, `{"id": "a"}`, auth...)
		require.Equal(t, http.StatusMisdirectedRequest, w.Code, target)
		detail := problemIn(t, w).Detail
		require.Contains(t, detail, "only delivers")
		require.Contains(t, detail, "role api")
	}
	f.requireUnchanged(t)
	require.Equal(t, http.StatusUnauthorized, call(t, h, http.MethodGet, "/v1/stats", "").Code,
		"the token still counts")
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, "/metrics", "").Code)
	require.Equal(t, http.StatusMethodNotAllowed, call(t, h, http.MethodPost, "/v1/version", "{}", auth...).Code)
}

func TestShutdownHandler_ClosesConnectionsWhileClosing(t *testing.T) {
	var closing atomic.Bool
	server := httptest.NewServer(New(Options{
		Service: newFake(), Closing: closing.Load,
		Access: AccessOptions{Tokens: []logs.Secret{"right"}},
	}))
	defer server.Close()
	for _, c := range []struct {
		path   string
		status int
	}{{"/healthz", 200}, {"/v1/stats", 401}, {"/nothing", 404}} {
		for _, now := range []bool{false, true} {
			closing.Store(now)
			resp, err := server.Client().Get(server.URL + c.path)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, c.status, resp.StatusCode)
			require.Equal(t, now, resp.Close, "%s while closing is %v", c.path, now)
		}
	}
}
