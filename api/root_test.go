package api

import (
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// consoleOptions are the options of an API with a console that answers with its path, and asks the API for its version.
func consoleOptions() Options {
	return Options{
		Service: newFake(), Logger: slog.New(slog.DiscardHandler),
		Console: func(routes http.Handler, _ func(func()) func() bool) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/console/version" {
					r.URL.Path = "/v1/version"
					routes.ServeHTTP(w, r)
					return
				}
				_, _ = io.WriteString(w, r.URL.EscapedPath())
			})
		},
	}
}

func TestConsole_IsServedBesideTheAPI(t *testing.T) {
	h := New(consoleOptions())
	for _, path := range []string{"/console", "/console/", "/console/topics/a%2Fb", "/console//x"} {
		require.Equal(t, path, call(t, h, http.MethodGet, path, "").Body.String())
	}
	require.Contains(t, call(t, h, http.MethodGet, "/console/version", "").Body.String(), `"version"`)
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, "/consoles", "").Code)
	require.Equal(t, http.StatusForbidden, call(t, h, http.MethodGet, "/console/", "", "Ringback-Attempt", "1").Code)

	w := call(t, h, http.MethodGet, "/", "", "Accept", "text/html,*/*")
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, "console/", w.Header().Get("Location"))
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/", "").Code)
}

func TestPath_ThatIsNotCleanIs404WithAHint(t *testing.T) {
	f := newFake()
	for _, h := range []http.Handler{handlerOf(f), New(consoleOptions())} {
		for sent, clean := range map[string]string{
			"//v1/jobs": "/v1/jobs", "/v1//jobs": "/v1/jobs", "/v1/./jobs": "/v1/jobs", "/v1/x/../jobs": "/v1/jobs",
			"/v1/jobs/": "/v1/jobs", "/v1//jobs/": "/v1/jobs", "/v1/topics//a%2F%2Fb": "/v1/topics/a%2F%2Fb", "//": "/",
		} {
			for _, method := range []string{http.MethodPost, http.MethodGet} {
				w := call(t, h, method, sent, `{"url": "http://x/"}`)
				require.Equal(t, http.StatusNotFound, w.Code, "%s %s", method, sent)
				require.Contains(t, problemIn(t, w).Detail, "send the request to "+clean+",", sent)
				require.Empty(t, w.Header().Get("Location"))
			}
		}
	}
	f.requireUnchanged(t)
	w := call(t, handlerOf(f), http.MethodPut, "/v1/topics/a%2F%2Fb", "{}")
	require.Equal(t, http.StatusUnprocessableEntity, w.Code, "escaped slashes are of the name")
}

func TestConsole_IsAbsentWhereAProcessOnlyDelivers(t *testing.T) {
	o := consoleOptions()
	o.HealthOnly = true
	h := New(o)
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, "/console/", "").Code)
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/", "", "Accept", "text/html").Code)
}
