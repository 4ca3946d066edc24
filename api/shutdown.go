package api

import "net/http"

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
		w.Header().Set("Connection", "close")
	}
	g.next.ServeHTTP(w, r)
}
