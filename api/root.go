package api

import (
	"net/http"
	"strings"

	"github.com/ringback/ringback/api/response"
)

// links returns the entry points.
func (a *api) links() []pageLink {
	link := func(name, path string, off bool) pageLink { return pageLink{Name: name, Path: path, Off: off} }
	return []pageLink{
		link("jobs", "/v1/jobs", a.healthOnly),
		link("topics", "/v1/topics", a.healthOnly),
		link("dead", "/v1/dead", a.healthOnly),
		link("work", "/v1/work", a.healthOnly),
		link("schedules", "/v1/schedules", a.healthOnly),
		link("stats", "/v1/stats", a.healthOnly),
		link("stream", "/v1/stream", a.healthOnly),
		link("whoami", "/v1/whoami", a.healthOnly),
		link("tokens", "/v1/tokens", a.healthOnly),
		link("namespaces", "/v1/namespaces", a.healthOnly),
		link("openapi", "/openapi.json", false),
		link("problems", response.ProblemsPath, false),
		link("version", "/v1/version", false),
		link("health", "/readyz", false),
		link("metrics", "/metrics", a.metrics == nil),
	}
}

// serveRoot answers with the entry points; browsers are sent to the console, if there is one.
func (a *api) serveRoot(w http.ResponseWriter, r *http.Request) error {
	return answerRoot(w, r, a.links(), a.hasConsole)
}

// besideConsole passes requests for the console on to it, and the others to routes. The console answers its own paths
// that are not clean with a page.
func besideConsole(routes, console http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/console" || strings.HasPrefix(r.URL.Path, "/console/") {
			console.ServeHTTP(w, r)
			return
		}
		routes.ServeHTTP(w, r)
	})
}
