package limits

import (
	"container/list"
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/limitedlog"
)

// BoundConnections bounds a server's connections and its requests in flight. Beyond bound plus an eighth, a new
// connection closes the one that has been idle for longest, or has not yet sent a full header. With bound requests in
// flight another is answered 503, except for health and metrics. Call it once, before the server serves; bound is at
// least 1.
func BoundConnections(s *http.Server, bound int, log *slog.Logger) {
	c := &connections{maxBusy: bound, maxOpen: bound + bound/8 + 1, next: s.Handler, open: make(map[net.Conn]*connection)}
	c.evicted.Logger, c.refused.Logger = log, log
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

// connections are a server's connections. They are safe for concurrent use.
type connections struct {
	maxBusy int // requests in flight
	maxOpen int // connections
	next    http.Handler

	evicted, refused limitedlog.Log

	mu   sync.Mutex
	open map[net.Conn]*connection
	idle list.List // of *connection without a request, the longest idle first
	busy int       // requests in flight
}

// A connection is one of a server's connections.
type connection struct {
	conn net.Conn
	idle *list.Element // nil while a request is in flight, and after closing
}

// connectionKey is the context key of a request's connection.
type connectionKey struct{}

// add adds a new connection. Beyond the bound it closes the longest idle one, which may be the new one.
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
			c.evicted.Warn("too many connections, closing the ones idle for longest", "max", c.maxBusy)
		}
	}
	return added
}

// remove removes a closed connection.
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

// begin notes a request. It reports false when there are too many.
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

// end notes the end of a request.
func (c *connections) end(of *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	if c.open[of.conn] == of {
		of.idle = c.idle.PushBack(of)
	}
}

// ServeHTTP serves a request, or answers 503 when there are too many.
func (c *connections) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok {
		c.next.ServeHTTP(w, r)
		return
	}
	defer c.end(of)
	if !c.begin(of) && !isMonitoring(r) {
		c.refused.Warn("too many requests in flight, answering 503", "max", c.maxBusy)
		w.Header().Set("Connection", "close")
		response.NewProblem(response.Overloaded, "too many requests in flight, retry").Write(w)
		return
	}
	c.next.ServeHTTP(w, r)
}

// isMonitoring reports whether a request asks for health or metrics.
func isMonitoring(r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz", "/readyz", "/metrics":
		return true
	}
	return false
}
