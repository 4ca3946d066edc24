package api

import (
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

func TestCreateToken_StoresWhatWasAskedFor(t *testing.T) {
	f := fullService()
	h := New(Options{Service: f, Logger: quiet, Access: AccessOptions{Tokens: []logs.Secret{"root"}}})
	before := time.Now()
	for body, want := range map[string]access.Token{
		`{"name": "a", "role": ` +
			`"read"}`: {Role: access.Read, Namespace: "default"},
		`{"name": "a", "role": "read", "bodies": true, "namespace": ` +
			`"shop"}`: {Role: access.Read, Namespace: "shop", Bodies: true},
		`{"name": "a", "role": "operate", "bodies": ` +
			`false}`: {Role: access.Operate, Namespace: "default"},
		`{"name": "a", "role": "admin", "topics": ` +
			`null}`: {Role: access.Admin, Namespace: "default", Bodies: true},
		`{"name": "a", "role": "publish", "topics": ["a", ` +
			`"b.*"]}`: {Role: access.Publish, Namespace: "default", Bodies: true, Topics: access.Topics{"a", "b.*"}},
		`{"name": "a", "role": "publish", "expires_in": "90d", "topics": null}`: {
			Role: access.Publish, Namespace: "default", Bodies: true, ExpiresAt: before.Add(90 * 24 * time.Hour),
		},
	} {
		f.created = nil
		w := call(t, h, http.MethodPost, "/v1/tokens", body, "Authorization", "Bearer root")
		require.Equal(t, http.StatusCreated, w.Code, "%s: %s", body, w.Body)
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		require.Contains(t, w.Body.String(), fakeToken)
		require.Len(t, f.created, 1)
		got := f.created[0]
		require.WithinDuration(t, want.ExpiresAt, got.ExpiresAt, time.Minute)
		want.Name, want.CreatedBy, want.ExpiresAt = "a", access.Root, got.ExpiresAt
		require.Equal(t, want, got, body)
	}
}

func TestCreateToken_NamesEveryInvalidField(t *testing.T) {
	f := newFake()
	h := New(Options{Service: f, Logger: quiet})
	many := strings.Repeat(`"a",`, access.MaxTopics) + `"a"`
	for body, fields := range map[string][]string{
		`{}`:                               {"/name", "/role"},
		`{"name": "root", "role": "rw"}`:   {"/name", "/role"},
		`{"name": "a b", "role": "read"}`:  {"/name"},
		`{"name": "Root", "role": "read"}`: {"/name"},
		`{"name": "a", "role": "read", "namespace": "A", "topics": ["a*b", "ok"], "expires_in": ` +
			`"1s"}`: {"/namespace", "/topics/0", "/expires_in"},
		`{"name": "a", "role": "admin", "topics": ["a"]}`:           {"/topics"},
		`{"name": "a", "role": "publish", "topics": []}`:            {"/topics"},
		`{"name": "a", "role": "read", "topics": [` + many + `]}`:   {"/topics"},
		`{"name": "a", "role": "read", "namespace": "missing"}`:     {"/namespace"},
		`{"name": "a", "role": "read", "expires_in": 0, "more": 1}`: {"/more", "/expires_in"},
		`{"name": 1, "role": ["read"], "bodies": "x"}`:              {"/name", "/role", "/bodies"},
	} {
		w := call(t, h, http.MethodPost, "/v1/tokens", body)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, body)
		require.ElementsMatch(t, fields, problemIn(t, w).fields(), "%s: %s", body, w.Body)
		require.Empty(t, f.created)
	}
}

func TestCreateToken_GrantsNoMoreThanTheCreatorHas(t *testing.T) {
	valid, _ := access.NewText()
	f := withTokens(fullService(),
		map[string]*access.Principal{valid: {Actor: "ops", Role: access.Admin, Namespace: "shop"}})
	h := New(Options{Service: f, Logger: quiet})
	ask := func(method, path, body string) int {
		return call(t, h, method, path, body, "Authorization", "Bearer "+valid).Code
	}
	for body, status := range map[string]int{
		`{"name": "a", "role": "read", "namespace": "default"}`: 403,
		`{"name": "a", "role": "read", "namespace": "missing"}`: 403,
		`{"name": "a", "role": "publish"}`:                      403, // it may not read bodies
		`{"name": "a", "role": "read", "namespace": "shop"}`:    201,
		`{"name": "a", "role": "admin", "bodies": false}`:       201,
	} {
		require.Equal(t, status, ask(http.MethodPost, "/v1/tokens", body), body)
	}
	for _, created := range f.created {
		require.Equal(t, "shop", created.Namespace)
		require.Equal(t, "ops", created.CreatedBy)
	}
	f.callers[valid] = &access.Principal{
		TokenID: "abcdefgh", Actor: "ops", Role: access.Admin, Namespace: "shop", Bodies: true,
		ExpiresAt: time.Now().Add(time.Hour),
	}
	f.created = nil
	for expiry, status := range map[string]int{``: 422, `, "expires_in": "61m"`: 422, `, "expires_in": "59m"`: 201} {
		w := call(t, h, http.MethodPost, "/v1/tokens", `{"name": "a", "role": "admin"`+expiry+`}`,
			"Authorization", "Bearer "+valid)
		require.Equal(t, status, w.Code, expiry)
		if status == 422 {
			require.Equal(t, []string{"/expires_in"}, problemIn(t, w).fields())
			require.Contains(t, w.Body.String(), f.callers[valid].ExpiresAt.Format(time.RFC3339))
		}
	}
	require.Len(t, f.created, 1)
	require.Equal(t, "abcdefgh", f.created[0].CreatedByID)
	require.Equal(t, http.StatusNotFound, ask(http.MethodGet, "/v1/tokens/5tR1nGs0", ""), "of the namespace default")
	require.Equal(t, http.StatusNotFound, ask(http.MethodDelete, "/v1/tokens/5tR1nGs0", ""))
	require.Equal(t, http.StatusOK, ask(http.MethodGet, "/v1/tokens/zzzzzzzz", ""))
	require.Equal(t, http.StatusNoContent, ask(http.MethodDelete, "/v1/tokens/zzzzzzzz", ""))
}

func TestTokens_OfTheNamespaceThatARootChooses(t *testing.T) {
	h := New(Options{Service: fullService(), Logger: quiet})
	for namespace, statuses := range map[string][2]int{"": {200, 200}, "default": {200, 404}, "shop": {404, 200}} {
		var header []string
		if namespace != "" {
			header = []string{"Ringback-Namespace", namespace}
		}
		for i, id := range []string{"5tR1nGs0", "zzzzzzzz"} { // of default and shop
			require.Equal(t, statuses[i], call(t, h, http.MethodGet, "/v1/tokens/"+id, "", header...).Code,
				"%s in %s", id, namespace)
			listed := call(t, h, http.MethodGet, "/v1/tokens", "", header...).Body.String()
			require.Equal(t, statuses[i] == 200, strings.Contains(listed, id), "%s in %s", id, namespace)
		}
	}
	require.Equal(t, http.StatusNotFound,
		call(t, h, http.MethodDelete, "/v1/tokens/5tR1nGs0", "", "Ringback-Namespace", "shop").Code)
	require.Equal(t, http.StatusNoContent,
		call(t, h, http.MethodDelete, "/v1/tokens/zzzzzzzz", "", "Ringback-Namespace", "shop").Code)
}

func TestQuota_IsAnsweredWithRetryAfter(t *testing.T) {
	f := newFake()
	f.register = func(job.New) store.RoutedResult {
		return store.RoutedResult{
			InsertResult: store.InsertResult{},
			Err:          &job.QuotaError{Quota: "rate", Limit: "5/s", RetryAfter: 1200 * time.Millisecond},
		}
	}
	w := call(t, handlerOf(f), http.MethodPost, "/v1/jobs", `{"url": "http://a.example"}`)
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "2", w.Header().Get("Retry-After"))
	p := problemIn(t, w)
	require.Equal(t, "quota", p.Code)
	require.Contains(t, p.Detail, "rate (5/s)")
	w = call(t, handlerOf(f), http.MethodPost, "/v1/batch", `{"jobs": [{"url": "http://a.example"}]}`)
	require.Equal(t, []int{429}, statusesIn(t, w.Body.String()))
}

func TestAuthentication_SlowsDownWrongTokensOfAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		valid, _ := access.NewText()
		f := withTokens(fullService(), map[string]*access.Principal{valid: {Role: access.Read, Namespace: "default"}})
		server := &http.Server{Handler: New(Options{
			Service: f, Logger: quiet,
			Access: AccessOptions{Tokens: []logs.Secret{"root"}},
		})}
		limits.BoundConnections(server, 1, quiet)
		began := time.Now()
		ask := func(remote, token string) (*httptest.ResponseRecorder, time.Duration) {
			conn, _ := net.Pipe()
			r := httptest.NewRequestWithContext(server.ConnContext(t.Context(), conn), http.MethodGet,
				"/v1/whoami", http.NoBody)
			r.Header.Set("Authorization", "Bearer "+token)
			r.RemoteAddr = remote
			w := httptest.NewRecorder()
			server.Handler.ServeHTTP(w, r)
			return w, time.Since(began)
		}
		for i := range 20 {
			w, after := ask("192.0.2.1:1", []string{fakeToken, "guess", "rb_typo"}[i%3])
			require.Equal(t, http.StatusUnauthorized, w.Code)
			require.Zero(t, after)
		}
		var waiting sync.WaitGroup
		waits := make(chan time.Duration, 10)
		for range cap(waits) {
			waiting.Go(func() {
				w, after := ask("192.0.2.1:2", "guess")
				assert.Equal(t, http.StatusTooManyRequests, w.Code)
				assert.Equal(t, "1", w.Header().Get("Retry-After"))
				assert.Equal(t, "too_many_failures", problemIn(t, w).Code)
				waits <- after.Round(time.Second)
			})
			synctest.Wait() // one request is at a time
		}
		for _, c := range []struct {
			remote, token string
			status        int
		}{
			{"192.0.2.1:2", valid, http.StatusOK},
			{"192.0.2.1:2", "root", http.StatusOK},
			{"192.0.2.2:1", "guess", http.StatusUnauthorized},
		} {
			w, after := ask(c.remote, c.token)
			require.Equal(t, c.status, w.Code,
				"correct tokens and other addresses are answered, although only one request is at a time: %v", c)
			require.Zero(t, after)
		}
		waiting.Wait()
		close(waits)
		var got []time.Duration
		for wait := range waits {
			got = append(got, wait/time.Second)
		}
		slices.Sort(got)
		require.Equal(t, []time.Duration{1, 2, 3, 4, 5, 5, 5, 5, 5, 5}, got)
	})
}

func TestAuthentication_TellsAStoreThatIsAwayFromAnUnknownToken(t *testing.T) {
	f := newFake()
	f.failed = &store.UnavailableError{Reason: "away"}
	w := call(t, handlerOf(f), http.MethodGet, "/v1/stats", "", "Authorization", "Bearer "+fakeToken)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "store_unavailable", problemIn(t, w).Code)
}
