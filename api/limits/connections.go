package limits

import (
	"container/list"
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/internal/logs"
)

// Bounds of requests that are served without knowing whose they are, besides those of all others.
const (
	// OpenReadTimeout bounds the arrival of an open request's body, and OpenWriteTimeout its whole handling.
	OpenReadTimeout  = 5 * time.Second
	OpenWriteTimeout = 15 * time.Second
)

// MaxConnections returns the number of connections of a server that serves bound requests at once: those that are idle
// or serve other kinds of requests have room.
func MaxConnections(bound int) int { return bound + bound/8 + 2*capacity.Probes.Whole }

// BoundConnections bounds a server's connections and its requests in flight. Beyond MaxConnections, a new connection
// closes the one that has been idle for longest, or has not yet sent a full header. With bound requests in flight
// another is answered 503, and so is one of a namespace or for a store that has its share: see Identify. Requests for
// health, readiness and metrics have a bound each, so that they are answered meanwhile. Open requests have none: their
// connections count as idle. Call it once, before the server serves; bound is at least 1.
func BoundConnections(s *http.Server, bound int, log *slog.Logger) {
	c := &connections{
		maxOpen: MaxConnections(bound), next: s.Handler, sockets: make(map[net.Conn]*connection),
		requests: capacity.Requests.Semaphore(bound), monitoring: make(map[string]*capacity.Semaphore),
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		c.monitoring[path] = capacity.Probes.Semaphore(0)
	}
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

// Open marks a request that is served without knowing whose it is, such as a form to sign in: clients without a token
// may be slow on purpose, and must not hold what others need. From now on its connection counts as idle: beyond the
// bound it is closed for a new one once it has been idle for longest. The request gets short deadlines, and its
// connection closes instead of waiting for a body that is not read. Since nothing else bounds open requests, each may
// take little memory only, and keep none of its body while it waits. It need not be one of a server with
// BoundConnections. Call it once: another call starts the time again.
func Open(w http.ResponseWriter, r *http.Request) {
	if of := connectionOf(r.Context()); of != nil {
		of.all.open(of)
	}
	hurry(w, r)
}

// Identify says on whose behalf a request is served, by its context. From now on its place among the requests in flight
// counts towards the share of the namespace, and of the store. Without room there it loses its place, and the error, a
// *capacity.FullError, is its answer. It need not be one of a server with BoundConnections.
func Identify(ctx context.Context, holder capacity.Holder) error {
	if of := connectionOf(ctx); of != nil {
		return of.all.identify(of, holder)
	}
	return nil
}

// hurry sets the deadlines of a request that is served without knowing whose it is.
func hurry(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	now := time.Now()
	_ = rc.SetWriteDeadline(now.Add(OpenWriteTimeout)) // an error means that there is no connection
	if r.ContentLength != 0 {
		_ = rc.SetReadDeadline(now.Add(OpenReadTimeout))
		w.Header().Set("Connection", "close")
	}
}

// Pause makes a request hold nothing for a while: meanwhile its connection counts as idle, and may be closed for
// another. It returns early when the request's context ends. Nothing may be done for the request afterwards but to
// answer it in short.
func Pause(ctx context.Context, d time.Duration) {
	if of := connectionOf(ctx); of != nil {
		of.all.end(of)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// connections are a server's connections. They are safe for concurrent use.
type connections struct {
	maxOpen int // connections
	next    http.Handler

	evicted, refused logs.Limited

	mu       sync.Mutex // guards what follows, and the connections
	sockets  map[net.Conn]*connection
	idle     list.List // of *connection without a request that holds something, the longest idle first
	requests *capacity.Semaphore
	// monitoring are the requests for health, readiness and metrics, by path.
	monitoring map[string]*capacity.Semaphore
}

// A connection is one of a server's connections.
type connection struct {
	all  *connections
	conn net.Conn
	idle *list.Element // nil while a request is in flight that holds something, and after closing
	// in counts the request in flight; nil: there is none, or it is refused, open or paused.
	in     *capacity.Semaphore
	holder capacity.Holder // of the request in flight
}

// connectionKey is the context key of a request's connection.
type connectionKey struct{}

// connectionOf returns the connection of a request by its context; nil: its server has no bound.
func connectionOf(ctx context.Context) *connection {
	of, _ := ctx.Value(connectionKey{}).(*connection)
	return of
}

// add adds a new connection. Beyond the bound it closes the longest idle one, which may be the new one.
func (c *connections) add(conn net.Conn) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := &connection{all: c, conn: conn}
	added.idle = c.idle.PushBack(added)
	c.sockets[conn] = added
	if len(c.sockets) > c.maxOpen {
		if longest, ok := c.idle.Front().Value.(*connection); ok {
			c.drop(longest)
			_ = longest.conn.Close()
			c.evicted.Warn("too many connections, closing the ones idle for longest", "max", c.requests.Whole())
		}
	}
	return added
}

// remove removes a closed connection.
func (c *connections) remove(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.sockets[conn]; known != nil {
		c.drop(known)
	}
}

func (c *connections) drop(known *connection) {
	delete(c.sockets, known.conn)
	if known.idle != nil {
		c.idle.Remove(known.idle)
		known.idle = nil
	}
}

// begin notes a request. Error: *capacity.FullError.
func (c *connections) begin(of *connection, kind *capacity.Semaphore) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of.idle != nil {
		c.idle.Remove(of.idle)
		of.idle = nil
	}
	err := kind.TryAcquire(of.holder, 1)
	if err == nil {
		of.in = kind
	}
	return err
}

// identify is Identify.
func (c *connections) identify(of *connection, holder capacity.Holder) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of.in != c.requests || of.holder == holder {
		return nil
	}
	err := of.in.Assign(of.holder, holder, 1)
	if err != nil {
		c.release(of)
		return err
	}
	of.holder = holder
	return nil
}

// open notes that a request holds nothing any more, unless it has a place that no others need.
func (c *connections) open(of *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of.in == c.requests {
		c.release(of)
	}
}

// end notes that a request holds nothing any more.
func (c *connections) end(of *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.release(of)
}

// release ends the counting of a request. Its connection is idle, if it is not closed.
func (c *connections) release(of *connection) {
	if of.in != nil {
		of.in.Release(of.holder, 1)
		of.in, of.holder = nil, capacity.Holder{}
	}
	if c.sockets[of.conn] == of && of.idle == nil {
		of.idle = c.idle.PushBack(of)
	}
}

// ServeHTTP serves a request, or answers 503 when there are too many.
func (c *connections) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of := connectionOf(r.Context())
	if of == nil {
		c.next.ServeHTTP(w, r)
		return
	}
	defer c.end(of)
	kind, monitoring := c.monitoring[r.URL.Path]
	if !monitoring {
		kind = c.requests
	}
	if err := c.begin(of, kind); err != nil {
		c.refuse(w, kind, err)
		return
	}
	if monitoring {
		hurry(w, r)
	}
	c.next.ServeHTTP(w, r)
}

// refuse answers 503, because there are too many requests of a kind.
func (c *connections) refuse(w http.ResponseWriter, kind *capacity.Semaphore, err error) {
	c.refused.Warn("too many requests in flight, answering 503", "max", kind.Whole())
	w.Header().Set("Connection", "close")
	response.FromError(err).Write(w)
}
