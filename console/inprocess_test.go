package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

//nolint:revive // t comes first in tests
func call(t *testing.T, ctx context.Context, h http.HandlerFunc, body string) (*http.Response, error) {
	t.Helper()
	c := &http.Client{Transport: &Transport{Handler: h, RemoteAddr: "192.0.2.1:1234"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"http://console.invalid/v1/jobs?x=1", strings.NewReader(body))
	require.NoError(t, err)
	return c.Do(req)
}

func TestTransport_PassesRequestAndAnswer(t *testing.T) {
	res, err := call(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Test", "yes")
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "no")
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.RequestURI(), r.RemoteAddr, sent)
	}, "hello")
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(t, http.StatusTeapot, res.StatusCode)
	require.Equal(t, "yes", res.Header.Get("X-Test"))
	require.Empty(t, res.Header.Get("X-Late"))
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, "POST /v1/jobs?x=1 192.0.2.1:1234 hello", string(body))
}

func TestTransport_PassesAnswersWhileTheyAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		res, err := call(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			_ = http.NewResponseController(w).Flush()
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, "tick\n"); err != nil {
					return
				}
			}
		}, "")
		require.NoError(t, err)
		line := make([]byte, 5)
		for range 3 {
			_, err = io.ReadFull(res.Body, line)
			require.NoError(t, err)
			require.Equal(t, "tick\n", string(line))
		}
		require.NoError(t, res.Body.Close())
		<-ended
	})
}

func TestTransport_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { synctest.Wait(); cancel() }()
		res, err := call(t, ctx, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			close(ended)
		}, "")
		if err == nil {
			_ = res.Body.Close()
		}
		require.ErrorIs(t, err, context.Canceled)
		<-ended
	})
}

func TestTransport_AnswersWithoutABody(t *testing.T) {
	res, err := call(t, t.Context(), func(http.ResponseWriter, *http.Request) {}, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.NoError(t, res.Body.Close())
}

func TestTransport_FailsWhenTheHandlerAborts(t *testing.T) {
	res, err := call(t, t.Context(), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "")
	if err == nil {
		_ = res.Body.Close()
	}
	require.ErrorIs(t, err, errNoAnswer)
}

func TestTransport_FailsWhenTheHandlerPanics(t *testing.T) {
	res, err := call(t, t.Context(), func(http.ResponseWriter, *http.Request) { panic("a bug") }, "")
	if err == nil {
		_ = res.Body.Close()
	}
	require.ErrorContains(t, err, "a bug")
}
