package api

import (
	"net/http"
	"strings"

	"github.com/ringback/ringback/api/response"
)

// A shutdownHandler is the outermost handler. It sends clients away from a process that is about to end, and tells its streams
// when it does.
type shutdownHandler struct {
	next    http.Handler
	closing func() bool
	// end ends streams; they would outlast any patience.
	end func()
}

// ServeHTTP serves, and asks for the connection to be given up where the process is about to end: a client that goes on
// over it could meet a port that is closed.
func (g *shutdownHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.closing() {
		w.Header()["Connection"] = []string{"close"}
	}
	g.next.ServeHTTP(w, r)
}

// notFound answers what no route serves. A process that only delivers answers 421 (RFC 9110, 15.5.20) and not 404: who
// asks it for a job must not take it that there is no such job, and may ask another process at once.
func (a *api) notFound(_ http.ResponseWriter, r *http.Request) error {
	if a.healthOnly && (r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/")) {
		return response.NewProblem(http.StatusMisdirectedRequest,
			"this process only delivers: use a process with the role api")
	}
	return response.NewProblem(http.StatusNotFound, "no such path: see /openapi.yaml")
}
