package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
)

func TestIdempotencyKey_IsTheIDOfAJobWithoutOne(t *testing.T) {
	for _, c := range []struct{ header, body string }{
		{"close-4711", `{}`},
		{`"close-4711"`, `{"id": null}`},
		{"", `{"id": "close-4711"}`},
		{"close-4711", `{"id": "close-4711"}`},
	} {
		f := newFake()
		var more []string
		if c.header != "" {
			more = []string{request.IdempotencyKey, c.header}
		}
		w := call(t, handlerOf(f), http.MethodPost, "/v1/jobs", c.body, more...)
		require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
		require.Equal(t, "close-4711", f.news[0].ID)
		require.Equal(t, "/v1/jobs/close-4711", w.Header().Get("Location"))
	}
}

func TestIdempotencyKey_IsValidatedLikeAnID(t *testing.T) {
	for header, body := range map[string]string{
		"a.b":                   `{"url": "http://a.example/"}`,
		"rb:a":                  `{}`,
		strings.Repeat("a", 65): `{}`,
		`"`:                     `{}`,
		`""`:                    `{"id": "a"}`,
		"other":                 `{"id": "a"}`,
		"a b":                   `{}`,
	} {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodPost, "/v1/jobs", body, request.IdempotencyKey, header)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, header)
		require.Equal(t, []string{request.IdempotencyKey}, problemIn(t, w).fields(), header)
		f.requireUnchanged(t)
	}
	f := newFake()
	c := newChunked(t, "/v1/jobs", `{"url": "x"}`)
	c.r.Header[request.IdempotencyKey] = []string{"a", "a"}
	handlerOf(f).ServeHTTP(c.w, c.r)
	require.Equal(t, []string{request.IdempotencyKey, "/url"}, problemIn(t, c.w).fields(), "all faults at once")
	f.requireUnchanged(t)
}

func TestIdempotencyKey_IsRefusedWithBatches(t *testing.T) {
	for kind, body := range map[string]string{"application/json": `{"jobs": [{"id": ` +
		`"a"}]}`, request.ContentTypeNDJSON: `{"id": "a"}`} {
		f := newFake()
		w := call(t, handlerOf(f), http.MethodPost, "/v1/batch", body, "Content-Type", kind,
			request.IdempotencyKey, "a")
		require.Equal(t, http.StatusUnprocessableEntity, w.Code)
		require.Equal(t, []string{request.IdempotencyKey}, problemIn(t, w).fields())
		require.Contains(t, w.Body.String(), "set the id of each job")
		f.requireUnchanged(t)
	}
}
