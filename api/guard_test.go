package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/store"
)

func TestGuard_RequiresTheTokenUnderV1(t *testing.T) {
	o := Options{Service: newFake(), Access: AccessOptions{Tokens: []logs.Secret{"right"}}}
	h := New(o)
	for _, shown := range []string{
		"", "Bearer", "Bearer ", "Bearer wrong", "Bearer right2", "Basic right", "right", "Bearer right x",
	} {
		h := New(o) // which has counted no wrong tokens
		for _, path := range []string{"/v1/stats", "/v1/version", "/v1/nothing", "/v1/jobs/a"} {
			w := call(t, h, http.MethodGet, path, "", "Authorization", shown)
			require.Equal(t, http.StatusUnauthorized, w.Code, "%s with %q", path, shown)
			require.Equal(t, `Bearer realm="ringback"`, w.Header().Get("WWW-Authenticate"))
			problemIn(t, w)
		}
	}
	for _, path := range []string{
		"//v1/stats", "/x/../v1/stats", "/v1//stats", "/%76%31/stats", "/v1%2Fstats", "/V1/stats",
	} {
		require.NotEqual(t, http.StatusOK, call(t, h, http.MethodGet, path, "").Code, "no way round: %s", path)
	}
	for _, shown := range []string{"Bearer right", "bearer  right"} {
		require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/v1/stats", "", "Authorization", shown).Code, shown)
	}
	for _, path := range []string{"/healthz", "/readyz", "/openapi.yaml"} {
		require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, path, "").Code, path)
	}
}

func TestToken_PrintsRedacted(t *testing.T) {
	text := fmt.Sprintf("%+v", Options{Access: AccessOptions{Tokens: []logs.Secret{"hunter2"}}})
	require.NotContains(t, text, "hunter2")
	require.Contains(t, text, "[redacted]")
}

func TestGuard_ServesOnlyNamesOfThisMachineOnLoopback(t *testing.T) {
	h := New(Options{Service: newFake(), Access: AccessOptions{Loopback: true}})
	for host, status := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "LOCALHOST:1": 200, "localhost.:80": 200, "127.0.0.1": 200,
		"127.0.0.1:8080": 200, "[::1]": 200, "[::1]:8080": 200,
		"": 403, "evil.example": 403, "evil.example:8080": 403, "localhost.evil.example": 403,
		"127.0.0.1.evil.example": 403,
		"10.0.0.1":               403, "0.0.0.0:8080": 403, "[::]": 403, "[::ffff:10.0.0.1]": 403,
		"localhost@evil.example": 403,
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

func TestGuard_ServesOnlyAddressesAndAllowedHostsWithoutAToken(t *testing.T) {
	hosts := []string{"Ringback.internal.", "proxy.example"}
	for _, o := range []AccessOptions{{
		CheckHost: true, Hosts: hosts,
	}, {Loopback: true, Hosts: hosts}, {Loopback: true, CheckHost: true, Hosts: hosts}} {
		h := New(Options{Service: newFake(), Access: o, Logger: quiet})
		beyond := http.StatusOK
		if o.Loopback {
			beyond = http.StatusForbidden
		}
		for host, status := range map[string]int{
			"localhost:8080": 200, "127.0.0.1": 200, "[::1]:8080": 200,
			"10.0.0.1": beyond, "10.0.0.1:8080": beyond, "[2001:db8::1]:8080": beyond,
			"ringback.internal": 200, "RINGBACK.internal:8080": 200, "ringback.internal.": 200, "proxy.example": 200,
			"": 403, "evil.example": 403, "evil.example:8080": 403, "a.ringback.internal": 403,
			"10.0.0.1.evil.example":          403,
			"ringback.internal@evil.example": 403, "ringback": 403,
		} {
			r := httptest.NewRequest(http.MethodGet, "/v1/version", nil)
			r.Host = host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Equal(t, status, w.Code, "%q %+v", host, o)
		}
	}
}

func TestGuard_LogsWhatItRefusesOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Log
		h := New(Options{Service: newFake(), Logger: slog.New(slog.NewTextHandler(&log,
			nil)), Access: AccessOptions{Tokens: []logs.Secret{"right"}, Loopback: true}})
		lines := func() []string {
			defer log.Reset()
			return strings.Split(strings.TrimSpace(log.String()), "\n")
		}
		long := "/v1/" + strings.Repeat("x", 10_000)
		for i := range 21 {
			w := call(t, h, http.MethodPost, "http://localhost"+long+"?token=hunter2", `{}`, "Authorization",
				"Bearer hunter2")
			if i < 20 {
				require.Equal(t, http.StatusUnauthorized, w.Code)
			} else {
				require.Equal(t, http.StatusTooManyRequests, w.Code)
			}
			require.Equal(t, "close", w.Header().Get("Connection"), "what it sends is not read")
		}
		got := lines()
		require.Len(t, got, 1)
		for _, want := range []string{"level=WARN", "authentication " +
			"failed", "remote=192.0.2.1:1234", "method=POST", "path=/v1/xxx", "reason=token_unknown"} {
			require.Contains(t, got[0], want)
		}
		require.NotContains(t, got[0], "hunter2")
		require.Less(t, len(got[0]), 500)
		time.Sleep(logs.LimitedInterval)
		call(t, h, http.MethodGet, "http://localhost/v1/stats", "")
		got = lines()
		require.Len(t, got, 1)
		require.Contains(t, got[0], "reason=token_missing")
		require.Contains(t, got[0], "suppressed=20")
		call(t, h, http.MethodGet, "http://evil.example/v1/stats", "")
		require.Contains(t, lines()[0], "host=evil.example")
		call(t, h, http.MethodGet, "http://localhost/v1/stats", "", "Authorization", "Bearer right")
		require.Empty(t, log.String())
	})
}

func TestHandle_LogsTheCauseOfEvery500(t *testing.T) {
	body := map[string]string{
		"POST /v1/jobs": `{"id": "a"}`, "PATCH /v1/jobs/{id}": `{"retries": 1}`,
		"POST /v1/batch":       `{"jobs": [{"id": "a"}]}`,
		"POST /v1/dead/revive": `{"all": true}`, "POST /v1/dead/purge": `{"all": true}`,
	}
	for _, r := range new(api).routes() {
		path := strings.NewReplacer("{topic}", "a", "{lane}", "b", "{id}", "c").Replace(r.path)
		for method := range r.methods {
			var log testkit.Log
			f := newFake()
			f.err = errors.New("the disk is on fire")
			f.bad = f.err
			text := body[method+" "+r.path]
			if text == "" && (method == http.MethodPut || method == http.MethodPatch) {
				text = `{}`
			}
			query := ""
			if r.path == "/v1/jobs" && method == http.MethodGet {
				query = "?topic=a&state=dead"
			}
			h := New(Options{Service: f, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			w := call(t, h, method, path+query, text)
			if strings.Contains(w.Body.String(), `"status":500`) {
				require.Contains(t, log.String(), "the disk is on fire", "%s %s", method, path)
				require.NotContains(t, w.Body.String(), "fire")
			} else {
				require.NotContains(t, []string{
					"/v1/jobs", "/v1/batch", "/v1/topics/a", "/v1/dead", "/v1/dead/purge",
					"/v1/stats",
				}, path, method)
			}
		}
	}
}

func TestGuard_RefusesRequestsOfAttempts(t *testing.T) {
	f := newFake()
	h := New(Options{Service: f, Access: AccessOptions{Tokens: []logs.Secret{"right"}}})
	for _, target := range []string{
		"POST /v1/jobs", "POST /v1/batch", "DELETE /v1/jobs/a", "PUT /v1/topics/a", "GET /v1/stats", "GET /healthz",
	} {
		for _, attempt := range []string{
			"1", "7", "x", "", "Ringback_Attempt", "RINGBACK_ATTEMPT", "ringback-attempt",
		} {
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
			f.requireUnchanged(t)
		}
	}
}

func TestGuard_RefusesCrossOriginRequests(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"} {
		w := call(t, h, http.MethodPost, "/v1/jobs", `{"id": "a"}`, name, value)
		require.Equal(t, http.StatusForbidden, w.Code, name)
		problemIn(t, w)
		f.requireUnchanged(t)
	}
	require.Equal(t, http.StatusCreated,
		call(t, h, http.MethodPost, "/v1/jobs", `{"id": "a"}`, "Sec-Fetch-Site", "same-origin").Code)
}

func TestRoutes_RefuseUnknownPathsAndMethods(t *testing.T) {
	h := handlerOf(newFake())
	for _, path := range []string{
		"/v1", "/v1/", "/v2/jobs", "/v1/jobs/a/b", "/v1/dead/a", "/v1/topics/a/secrets", "/v1/topics/a/lanes/b",
		"/v1/topics/a/lanes/b/stats",
		"/metrics", "/v1/jobs/",
	} {
		w := call(t, h, http.MethodGet, path, "")
		require.Equal(t, http.StatusNotFound, w.Code, path)
		problemIn(t, w)
	}
	for target, allow := range map[string]string{
		"/v1/jobs": "GET, HEAD, POST", "/v1/batch": "POST", "/v1/jobs/a": "DELETE, GET, HEAD, PATCH",
		"/v1/jobs/a/run": "POST", "/v1/topics/a": "DELETE, GET, HEAD, PATCH, PUT", "/v1/topics/a/pause": "POST",
		"/v1/stats": "GET, HEAD", "/healthz": "GET, HEAD", "/metrics": "GET, HEAD", "/v1/dead": "GET, HEAD",
		"/v1/dead/purge":       "POST",
		"/v1/topics/a/lanes/b": "DELETE, GET, HEAD, PATCH, PUT", "/v1/topics/a/lanes/b/secrets": "GET, HEAD, POST",
		"/v1/topics/a/secrets/b": "DELETE", "/v1/topics/a/keys": "GET, HEAD",
	} {
		w := call(t, h, http.MethodOptions, target, "")
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, target)
		require.Equal(t, allow, w.Header().Get("Allow"), target)
		problemIn(t, w)
	}
	require.Equal(t, http.StatusMethodNotAllowed, call(t, h, http.MethodDelete, "/v1/topics/a/pause", "").Code)
	require.Equal(t, http.StatusOK, call(t, h, http.MethodHead, "/v1/stats", "").Code)
}

func TestReady_SaysWhyNot(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	require.JSONEq(t, `{"status": "alive"}`, call(t, h, http.MethodGet, "/healthz", "").Body.String())
	require.JSONEq(t, `{"status": "ready", "version": null, "stores": [{"name": "main", "ready": true, "detail": `+
		`null}]}`, call(t, h, http.MethodGet, "/readyz", "").Body.String())
	for want, err := range map[string]error{
		"not ready: shutting down": errors.New("shutting down"),
		"not ready: redis answers OOM": &store.UnavailableError{
			Reason: "redis answers OOM", Err: errors.New("dial 10.0.0.7"),
		},
	} {
		f.ready = err
		h = handlerOf(f)
		w := call(t, h, http.MethodGet, "/readyz", "")
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, want, problemIn(t, w).Detail)
		require.NotEmpty(t, w.Header().Get("Retry-After"))
	}
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/healthz", "").Code, "alive, though not ready")
	require.Equal(t, "v1.2.3", decodeResponse(t, call(t, h, http.MethodGet, "/v1/version", ""))["version"])
}

// A check writes to the store, and needs no token.
func TestReady_ChecksAtMostTwiceASecondWhileAllIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, closing := newFake(), false
		h := New(Options{Service: f, Logger: quiet, Closing: func() bool { return closing }})
		for range 100 {
			require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/readyz", "").Code)
		}
		require.Equal(t, 1, f.checks)
		f.ready = errors.New("shutting down")
		time.Sleep(readyFor)
		require.Equal(t, http.StatusServiceUnavailable, call(t, h, http.MethodGet, "/readyz", "").Code)
		f.ready = nil
		require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/readyz", "").Code,
			"a store that is back is seen at once")
		require.Equal(t, 3, f.checks)
		closing = true
		f.ready = errors.New("shutting down")
		require.Equal(t, http.StatusServiceUnavailable, call(t, h, http.MethodGet, "/readyz", "").Code,
			"and so is a stop")
	})
}

// hangingStores is a Service whose main store does not answer; the others do.
type hangingStores struct{ *fake }

func (s hangingStores) FindStore(context.Context, string) (Store, error) { return s, nil }

func (s hangingStores) Readiness(ctx context.Context) []store.Readiness {
	s.checks++
	<-ctx.Done()
	return append([]store.Readiness{{Store: "main", Err: ctx.Err()}}, s.otherStores...)
}

func TestReady_WaitsForAtMostTwoChecksAndNotForClientsThatAreGone(t *testing.T) {
	require.Less(t, 2*readyTimeout, 3*time.Second-500*time.Millisecond,
		"probes give up after 3 s, and the answer has a way to go")
	for name, c := range map[string]struct {
		closing bool
		others  []store.Readiness
		checks  int // that the later probes wait for
	}{
		"the only store hangs": {checks: 2},
		"one of two hangs":     {others: []store.Readiness{{Store: "eu"}}, checks: 1},
		"while closing":        {closing: true, others: []store.Readiness{{Store: "eu"}}, checks: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.otherStores = c.others
				h := New(Options{Service: hangingStores{f}, Logger: quiet, Closing: func() bool { return c.closing }})
				began := time.Now()
				answered := make(chan time.Duration, 10)
				probe := func(ctx context.Context) {
					go func() {
						r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", http.NoBody)
						h.ServeHTTP(httptest.NewRecorder(), r)
						answered <- time.Since(began)
					}()
					synctest.Wait()
				}
				probe(t.Context())
				time.Sleep(time.Second)
				gone, leave := context.WithCancel(t.Context())
				probe(gone)
				leave()
				require.Equal(t, time.Second, <-answered)
				for range 8 {
					probe(t.Context())
				}
				require.Equal(t, readyTimeout, <-answered)
				for range 8 {
					require.Equal(t, time.Duration(c.checks)*readyTimeout, <-answered)
				}
				require.Equal(t, c.checks, f.checks)
			})
		})
	}
}

func TestReady_TellsTheVersionToItsOwnMachine(t *testing.T) {
	h := handlerOf(newFake())
	own := &net.TCPAddr{IP: net.ParseIP("10.0.0.5"), Port: 8080}
	for peer, shown := range map[string]bool{
		"127.0.0.1:5000": true, "[::1]:5000": true, "[::ffff:127.0.0.1]:5000": true, "10.0.0.5:5000": true,
		"[::ffff:10.0.0.5]:5000": true,
		"10.0.0.6:5000":          false, "@": false,
	} {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, own),
			http.MethodGet, "/readyz", http.NoBody)
		r.RemoteAddr = peer
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code)
		var want any
		if shown {
			want = "v1.2.3"
		}
		require.Equal(t, want, decodeResponse(t, w)["version"], peer)
	}
}

func TestReady_IfOneStoreIs(t *testing.T) {
	f := newFake()
	h := handlerOf(f)
	f.otherStores = []store.Readiness{{Store: "eu"}}
	f.ready = &store.UnavailableError{Reason: "redis answers OOM", Err: errors.New("dial 10.0.0.7")}
	w := call(t, h, http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.JSONEq(t, `{"status": "ready", "version": null, "stores": [
		{"name": "main", "ready": false, "detail": "redis answers OOM"}, {"name": "eu", "ready": true, "detail": `+
		`null}]}`, w.Body.String())
	f.otherStores[0].Err = context.DeadlineExceeded
	w = call(t, handlerOf(f), http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "not ready: main: redis answers OOM; eu: the store does not answer", problemIn(t, w).Detail)
}

func TestNew_RequiresAService(t *testing.T) {
	require.Panics(t, func() { New(Options{}) })
}

func TestServer_SetsEveryLimit(t *testing.T) {
	s := Server(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	for _, limit := range []time.Duration{s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout} {
		require.Positive(t, limit)
	}
	require.Positive(t, s.MaxHeaderBytes)
	require.Greater(t, s.WriteTimeout, s.ReadTimeout+limits.Timeout, "the time to write runs while the request is read")
}
