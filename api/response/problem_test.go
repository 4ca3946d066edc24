package response

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

func TestFromError_MapsEveryError(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		fields []string
	}{
		"invalid": {&job.InvalidError{Errors: []job.FieldError{{Field: "/url"}, {Field: "/ladder/2"}}}, 422, []string{
			"/url", "/ladder/2",
		}},
		"undeclared":  {&job.UndeclaredTopicError{Topic: "orders"}, 422, []string{"/topic"}},
		"cursor":      {store.ErrCursor, 422, []string{"?cursor"}},
		"not found":   {store.ErrNotFound, 404, nil},
		"state":       {&store.StateError{State: job.Running}, 409, nil},
		"version":     {store.ErrVersion, 412, nil},
		"contended":   {store.ErrContended, 409, nil},
		"expired":     {store.ErrExpired, 409, nil},
		"unavailable": {&store.UnavailableError{Reason: "connect to redis.internal"}, 503, nil},
		"cancelled":   {context.Canceled, 503, nil},
		"deadline":    {context.DeadlineExceeded, 503, nil},
		"timeout":     {ErrTimeout, 503, nil},
		"problem":     {NewProblem(Quota, "short"), 429, nil},
		"unknown":     {errors.New("disk /var/lib is full"), 500, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := FromError(fmt.Errorf("register in shard 3: %w", c.err))
			require.Equal(t, c.status, p.Status)
			var fields []string
			for _, f := range p.Fields {
				fields = append(fields, f.Field)
			}
			require.Equal(t, c.fields, fields)
			require.NotEmpty(t, p.Detail)
			for _, internal := range []string{"shard 3", "redis.internal", "/var/lib"} {
				require.NotContains(t, p.Detail, internal)
			}
			require.Equal(t, c.status == 500, p.Cause != nil, "only unknown errors are logged")
		})
	}
}

func TestFromError_NamesTheStoreThatAProcessMisses(t *testing.T) {
	p := FromError(fmt.Errorf("list topics: %w", &store.NotConfiguredError{Namespace: "shop", Store: "eu"}))
	require.Equal(t, 503, p.Status)
	require.Equal(t, StoreUnavailable, p.Code)
	require.Equal(t, "the namespace shop is on the store eu, which this process does not have: start it with --store "+
		"eu=URL", p.Detail)
	p = FromError(&job.NamespaceStoreError{Namespace: "shop", Store: "eu"})
	require.Equal(t, 409, p.Status)
	require.Equal(t, InUse, p.Code)
	require.Contains(t, p.Detail, "the namespace shop is on the store eu and cannot move: delete the namespace")
	require.Contains(t, (&job.NamespaceStoreError{Namespace: "default", Store: "main"}).Error(),
		": use another namespace")
}

func TestProblem_WritesRetryAfterInWholeSeconds(t *testing.T) {
	for wait, want := range map[time.Duration][2]string{
		0: {"1", "1000"}, time.Millisecond: {"1", "1000"}, time.Second: {"1", "1000"},
		1001 * time.Millisecond: {"2", "1001"},
	} {
		w := httptest.NewRecorder()
		FromError(&store.UnavailableError{RetryAfter: wait}).Write(w)
		require.Equal(t, want[0], w.Header().Get("Retry-After"), wait)
		require.Contains(t, w.Body.String(), `"retry_after_ms":`+want[1]+`,`, wait)
	}
	w := httptest.NewRecorder()
	NewProblem(NotFound, "no such job").Write(w)
	require.Empty(t, w.Header().Get("Retry-After"))
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	requireExact(t, `{"type":"/problems#not_found","code":"not_found","title":"Not found","status":404,"detail":"no `+
		`such job","retry_after_ms":null,"errors":[]}`+"\n", w.Body.String())
}

func TestProblem_ListsItsFields(t *testing.T) {
	require.Equal(t, "the request has an invalid field", Invalid(job.FieldError{}).Detail)
	p := Invalid(job.FieldError{Field: "/url", Detail: "is required"}, job.FieldError{Field: "/a", Detail: "\"x\""})
	requireExact(t, `{"error":{"type":"/problems#invalid_field","code":"invalid_field","title":"Invalid `+
		`field","status":422,"detail":"the request has 2 invalid fields","retry_after_ms":null,`+
		`"errors":[{"field":"/url","detail":"is required"},{"field":"/a","detail":"\"x\""}]}}`,
		written(t, func(o *Buffer) { o.Problem("error", p) }))
}

func TestProblem_ErrorNamesItsCause(t *testing.T) {
	cause := errors.New("disk full")
	p := FromError(cause)
	require.ErrorIs(t, p, cause)
	require.Contains(t, p.Error(), "500: ")
	require.Contains(t, p.Error(), "disk full")
	require.True(t, NewOverload("too many lists").Overload)
}

func TestWithHint_AddsToStateErrorsOnly(t *testing.T) {
	err := WithHint(&store.StateError{State: job.Running}, "cancel it first")
	require.Equal(t, 409, FromError(err).Status)
	require.Contains(t, FromError(err).Detail, ": cancel it first")
	require.Equal(t, store.ErrNotFound, WithHint(store.ErrNotFound, "cancel it first"))
}
