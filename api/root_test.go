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

func TestConsole_IsAbsentWhereAProcessOnlyDelivers(t *testing.T) {
	o := consoleOptions()
	o.HealthOnly = true
	h := New(o)
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodGet, "/console/", "").Code)
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/", "", "Accept", "text/html").Code)
}
