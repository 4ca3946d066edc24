package api

import (
	"net/http"
	"strings"

	"github.com/ringback/ringback/api/response"
)

// A shutdownHandler is the outermost handler. It closes connections of a process that is about to stop, and ends its
// streams.
type shutdownHandler struct {
	next    http.Handler
	closing func() bool
	// end ends streams.
	end func()
}

// ServeHTTP serves a request. While the process is about to stop, it asks the client to close the connection, so that no
// later request meets a closed port.
func (g *shutdownHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.closing() {
		w.Header()["Connection"] = []string{"close"}
	}
	g.next.ServeHTTP(w, r)
}

// notFound answers requests without a route. A process that only delivers answers 421 (RFC 9110, 15.5.20) instead of 404
// to requests for jobs, so that clients retry at another process.
func (a *api) notFound(_ http.ResponseWriter, r *http.Request) error {
	if a.healthOnly && (r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/")) {
		return response.NewProblem(http.StatusMisdirectedRequest,
			"this process only delivers: use a process with the role api")
	}
	return response.NewProblem(http.StatusNotFound, "no such path: see /openapi.yaml")
}
