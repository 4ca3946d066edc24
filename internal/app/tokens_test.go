package app

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// Two processes on one Redis: what is created in one works in the other at once, and what is revoked in one is refused
// in the other within 5 s.
func TestTokens_HoldInAllProcesses(t *testing.T) {
	const root = "root-0123456789abc"
	o := testOptions(t)
	o.Store, o.Token = redistest.Start(t).URL(), root
	one, other := run(t, o), run(t, o)
	ask := func(r runningApp, token, method, path, body string, more ...string) (int, string) {
		return r.ask(t, method, path, body, append(more, "Authorization", "Bearer "+token)...)
	}
	status, answer := ask(one, root, http.MethodPut, "/v1/namespaces/shop",
		`{"quota": {"pending": 2, "rate": "100/m"}}`)
	require.Equal(t, http.StatusOK, status, answer)
	status, answer = ask(other, root, http.MethodPost, "/v1/tokens",
		`{"name": "shop-api", "role": "publish", "namespace": "shop"}`)
	require.Equal(t, http.StatusCreated, status, answer)
	var created struct{ ID, Token string }
	require.NoError(t, json.Unmarshal([]byte(answer), &created))

	const registration = `{"url": "http://127.0.0.1:1/", "delay": "1h"}`
	for _, r := range []runningApp{one, other} {
		status, answer = ask(r, created.Token, http.MethodPost, "/v1/jobs", registration)
		require.Equal(t, http.StatusCreated, status, answer)
		status, _ = ask(r, created.Token, http.MethodGet, "/v1/jobs", "")
		require.Equal(t, http.StatusForbidden, status)
	}
	require.Eventually(t, func() bool { // the other's count is at most a second old
		status, answer = ask(one, created.Token, http.MethodPost, "/v1/jobs", registration)
		return status == http.StatusTooManyRequests
	}, 5*time.Second, 10*time.Millisecond)
	require.Contains(t, answer, `"code":"quota"`)
	status, answer = ask(one, root, http.MethodGet, "/v1/stats", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, answer, `"registered":0`, "of the namespace default")

	status, answer = ask(one, root, http.MethodDelete, "/v1/tokens/"+created.ID, "")
	require.Equal(t, http.StatusNoContent, status, answer)
	status, answer = ask(one, created.Token, http.MethodGet, "/v1/whoami", "")
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, answer, "token_unknown")
	require.Eventually(t, func() bool {
		status, _ = ask(other, created.Token, http.MethodGet, "/v1/whoami", "")
		return status == http.StatusUnauthorized
	}, 5*time.Second, 10*time.Millisecond)
}
