package api

import (
	"container/list"
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/ringback/ringback/api/response"
)

// BoundConnections keeps a server's connections to about bound: beyond that the one that was without a request for the
// longest is closed for each that comes, whether it was used before, or has sent nothing, or a part of a header. Where
// bound requests are under way, another is answered 503, unless it asks for health or metrics: those who watch the process
// must not take it for dead because it has much to do. Up to an eighth more connections are open at a time, to give such
// answers. It must be called before the server serves, once; bound is at least 1.
func BoundConnections(s *http.Server, bound int, log *slog.Logger) {
	c := &connections{maxBusy: bound, maxOpen: bound + bound/8 + 1, next: s.Handler, open: make(map[net.Conn]*connection)}
	c.evicted.log, c.refused.log = log, log
	if c.next == nil {
		c.next = http.DefaultServeMux
	}
	s.Handler = c
	contextOf, stateOf := s.ConnContext, s.ConnState
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if contextOf != nil {
			ctx = contextOf(ctx, conn)
		}
		return context.WithValue(ctx, connectionKey{}, c.add(conn))
	}
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		if stateOf != nil {
			stateOf(conn, state)
		}
		if state == http.StateClosed || state == http.StateHijacked {
			c.remove(conn)
		}
	}
}

// connections are those of a server. Safe for concurrent use.
type connections struct {
	maxBusy int // requests under way
	maxOpen int // connections
	next    http.Handler

	evicted, refused limitedLog

	mu   sync.Mutex
	open map[net.Conn]*connection
	idle list.List // of *connection without a request, the longest first
	busy int       // requests under way
}

// A connection is one of them.
type connection struct {
	conn net.Conn
	idle *list.Element // nil while a request is under way, and when it was closed
}

// connectionKey is for a request's connection in its context.
type connectionKey struct{}

// add takes in a new connection and, where there are too many, closes one without a request. That is the new one where
// all others have one.
func (c *connections) add(conn net.Conn) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := &connection{conn: conn}
	added.idle = c.idle.PushBack(added)
	c.open[conn] = added
	if len(c.open) > c.maxOpen {
		if longest, ok := c.idle.Front().Value.(*connection); ok {
			c.drop(longest)
			_ = longest.conn.Close()
			c.evicted.warn("too many connections, closing the ones idle for longest", "max", c.maxBusy)
		}
	}
	return added
}

// remove forgets a connection that was closed.
func (c *connections) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.open[conn]; known != nil {
		c.drop(known)
	}
}

func (c *connections) drop(known *connection) {
	delete(c.open, known.conn)
	if known.idle != nil {
		c.idle.Remove(known.idle)
		known.idle = nil
	}
}

// begin notes that a request is under way; false: there are too many.
func (c *connections) begin(of *connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy++
	if of.idle != nil {
		c.idle.Remove(of.idle)
		of.idle = nil
	}
	return c.busy <= c.maxBusy
}

// end notes that a request has been answered.
func (c *connections) end(of *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	if c.open[of.conn] == of {
		of.idle = c.idle.PushBack(of)
	}
}

// ServeHTTP serves a request unless there are too many.
func (c *connections) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		c.next.ServeHTTP(w, r)
		return
	}
	defer c.end(of)
	if !c.begin(of) && !isMonitoring(r) {
		c.refused.warn("too many requests under way, answering 503", "max", c.maxBusy)
		w.Header()["Connection"] = closeIt
		response.NewProblem(http.StatusServiceUnavailable, "too many requests in flight, retry").Write(w)
		return
	}
	c.next.ServeHTTP(w, r)
}

// isMonitoring reports whether a request is one of those that watch the process, which cost little.
func isMonitoring(r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz", "/readyz", "/metrics":
		return true
	}
	return false
}
