package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/store"
)

func TestEverythingUnderV1NeedsTheToken(t *testing.T) {
	h := New(Options{Service: newFake(), Token: "right"})
	for _, shown := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer right2", "Basic right", "right", "Bearer right x"} {
		for _, path := range []string{"/v1/stats", "/v1/version", "/v1/nothing", "/v1/jobs/a"} {
			w := call(t, h, http.MethodGet, path, "", "Authorization", shown)
			require.Equal(t, http.StatusUnauthorized, w.Code, "%s with %q", path, shown)
			require.Equal(t, `Bearer realm="ringback"`, w.Header().Get("WWW-Authenticate"))
			problemIn(t, w)
		}
	}
	for _, path := range []string{"//v1/stats", "/x/../v1/stats", "/v1//stats", "/%76%31/stats", "/v1%2Fstats", "/V1/stats"} {
		require.NotEqual(t, http.StatusOK, call(t, h, http.MethodGet, path, "").Code, "no way round: %s", path)
	}
	for _, shown := range []string{"Bearer right", "bearer  right"} {
		require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/v1/stats", "", "Authorization", shown).Code, shown)
	}
	for _, path := range []string{"/healthz", "/readyz", "/openapi.yaml"} {
		require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, path, "").Code, path)
	}
}

func TestATokenDoesNotPrintItself(t *testing.T) {
	token := Token("hunter2")
	for _, text := range []string{
		fmt.Sprint(token), fmt.Sprintf("%#v", token), fmt.Sprintf("%+v", Options{Token: token}), token.LogValue().String(),
	} {
		require.NotContains(t, text, "hunter2")
		require.Contains(t, text, "[redacted]")
	}
	require.Empty(t, Token("").String())
}

func TestOnLoopbackOnlyNamesOfThisMachineAreServed(t *testing.T) {
	h := New(Options{Service: newFake(), Loopback: true})
	for host, status := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "LOCALHOST:1": 200, "localhost.:80": 200, "127.0.0.1": 200, "127.0.0.1:8080": 200,
		"[::1]": 200, "[::1]:8080": 200,
		"": 403, "evil.example": 403, "evil.example:8080": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403,
		"10.0.0.1": 403, "0.0.0.0:8080": 403, "[::]": 403, "[::ffff:10.0.0.1]": 403, "localhost@evil.example": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "/v1/version", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, status, w.Code, host)
		if status != http.StatusOK {
			problemIn(t, w)
		}
	}
}

func TestAJobCannotCallTheAPIByWhateverWayItCame(t *testing.T) {
	f := newFake()
	h := New(Options{Service: f, Token: "right"})
	for _, target := range []string{
		"POST /v1/jobs", "POST /v1/batch", "DELETE /v1/jobs/a", "PUT /v1/topics/a", "GET /v1/stats", "GET /healthz",
	} {
		for _, attempt := range []string{"1", "7", "x", "", "Ringback_Attempt", "RINGBACK_ATTEMPT", "ringback-attempt"} {
			name := "Ringback-Attempt"
			if len(attempt) > 1 { // a spelling of the name
				name = attempt
			}
			method, path, _ := strings.Cut(target, " ")
			r := httptest.NewRequest(method, path, strings.NewReader(`{"id": "a"}`))
			r.Header = http.Header{
				"Content-Type": {"application/json"}, "Authorization": {"Bearer right"}, name: {attempt},
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Equal(t, http.StatusForbidden, w.Code, "%s with %q", target, attempt)
			require.Equal(t, "a job cannot call the API", problemIn(t, w).Detail)
			f.untouched(t)
		}
	}
}

func TestNoWebPageOfAnotherOriginCanPost(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"} {
		w := call(t, h, http.MethodPost, "/v1/jobs", `{"id": "a"}`, name, value)
		require.Equal(t, http.StatusForbidden, w.Code, name)
		problemIn(t, w)
		f.untouched(t)
	}
	require.Equal(t, http.StatusCreated, call(t, h, http.MethodPost, "/v1/jobs", `{"id": "a"}`, "Sec-Fetch-Site", "same-origin").Code)
}

func TestUnknownPathsAndMethodsAreProblems(t *testing.T) {
	h := handlerOf(newFake())
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v2/jobs", "/v1/jobs/a/b", "/v1/dead/a", "/v1/topics/a/secrets", "/v1/topics/a/lanes/b", "/v1/topics/a/lanes/b/stats",
		"/metrics", "/v1/jobs/",
	} {
		w := call(t, h, http.MethodGet, path, "")
		require.Equal(t, http.StatusNotFound, w.Code, path)
		problemIn(t, w)
	}
	for target, allow := range map[string]string{
		"/v1/jobs": "GET, HEAD, POST", "/v1/batch": "POST", "/v1/jobs/a": "DELETE, GET, HEAD, PATCH",
		"/v1/jobs/a/run": "POST", "/v1/topics/a": "GET, HEAD, PATCH, PUT", "/v1/topics/a/pause": "POST",
		"/v1/stats": "GET, HEAD", "/healthz": "GET, HEAD", "/metrics": "GET, HEAD", "/v1/dead": "GET, HEAD", "/v1/dead/purge": "POST",
		"/v1/topics/a/lanes/b": "DELETE, GET, HEAD, PATCH, PUT", "/v1/topics/a/lanes/b/secrets": "GET, HEAD, POST",
		"/v1/topics/a/secrets/b": "DELETE", "/v1/topics/a/keys": "GET, HEAD",
	} {
		w := call(t, h, http.MethodOptions, target, "")
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, target)
		require.Equal(t, allow, w.Header().Get("Allow"), target)
		problemIn(t, w)
	}
	require.Equal(t, http.StatusMethodNotAllowed, call(t, h, http.MethodDelete, "/v1/topics/a", "").Code)
	require.Equal(t, http.StatusOK, call(t, h, http.MethodHead, "/v1/stats", "").Code)
}

func TestReadinessSaysWhyNot(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	require.JSONEq(t, `{"status": "alive"}`, call(t, h, http.MethodGet, "/healthz", "").Body.String())
	require.JSONEq(t, `{"status": "ready"}`, call(t, h, http.MethodGet, "/readyz", "").Body.String())
	for says, err := range map[string]error{
		"not ready: shutting down": errors.New("shutting down"),
		"not ready: redis answers OOM": &store.UnavailableError{
			Reason: "redis answers OOM", Err: errors.New("dial 10.0.0.7"),
		},
	} {
		f.ready = err
		w := call(t, h, http.MethodGet, "/readyz", "")
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, says, problemIn(t, w).Detail)
		require.NotEmpty(t, w.Header().Get("Retry-After"))
	}
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/healthz", "").Code, "alive, though not ready")
	require.JSONEq(t, `{"version": "v1.2.3"}`, call(t, h, http.MethodGet, "/v1/version", "").Body.String())
}

func TestAServiceIsNeeded(t *testing.T) {
	require.Panics(t, func() { New(Options{}) })
}

func TestEveryLimitOfTheServerIsSet(t *testing.T) {
	s := Server(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	for _, limit := range []time.Duration{s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout} {
		require.Positive(t, limit)
	}
	require.Positive(t, s.MaxHeaderBytes)
	require.Greater(t, s.WriteTimeout, s.ReadTimeout+requestTimeout, "the time to write runs while the request is read")
}
