package api

import (
	"net/http"
	"path"
	"strings"

	"github.com/ringback/ringback/api/response"
)

// notFoundPage returns the problem of a path that does not exist.
func notFoundPage(r *http.Request) *response.Problem {
	detail := "no such path: GET / lists the paths"
	if clean := cleanPath(r); clean != r.URL.EscapedPath() {
		detail = "no such path: send the request to " + clean +
			", without repeated slashes, segments of dots and a slash at the end"
	}
	return response.NewProblem(response.NotFound, detail)
}

// cleanOnly passes requests on to mux whose paths are clean. http.ServeMux would redirect the others, and clients that
// do not follow would take an answer without an error for success.
func cleanOnly(mux, notFound http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sent := r.URL.EscapedPath(); strings.TrimSuffix(sent, "/") != strings.TrimSuffix(cleanPath(r), "/") {
			notFound.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// cleanPath returns a request's path, escaped, without repeated slashes, segments of dots and a slash at its end.
func cleanPath(r *http.Request) string { return path.Clean("/" + r.URL.EscapedPath()) }
