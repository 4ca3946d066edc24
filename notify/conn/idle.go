package conn

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/h1"
)

const (
	// idleTimeout is the time after which an unused connection is closed, unless its receiver announced a shorter one.
	idleTimeout = 90 * time.Second
	// sweepInterval is the interval of the check for connections closed by receivers.
	sweepInterval = 5 * time.Second
	// minSweep is the least time between two sweeps: receivers that announce short times must not keep the mutex busy.
	minSweep = 500 * time.Millisecond
)

// idle is the pool of idle connections of package h1. A connection serves one queue: late bytes must not be read as the
// response to another lane's job. Connections of a host and queue are reused last in, first out, so that surplus ones
// reach the end of their time. When there are too many, the oldest are closed.
type idle struct {
	most, mostOfHost int // at least 1

	mu     sync.Mutex
	routes map[route][]*idleConn // the oldest first; none is empty
	hosts  map[string]*list.List // by host and port: *idleConn, the oldest first; none is empty
	order  *list.List            // of *idleConn, the oldest first
	timer  *time.Timer           // of the next sweep, while there are connections
	next   time.Time             // when that is
	shut   bool                  // closed, and no request since
}

// A route is what a connection serves: one queue at one host and port.
type route struct {
	addr  string
	queue job.Queue
}

// idleConn is a connection between two requests.
type idleConn struct {
	*h1.Conn

	route      route
	generation generation
	dialled    *dialRecord

	// Guarded by the mutex of idle.
	until           time.Time // it is reused before
	ofHost, element *list.Element
}

func newIdle(most, mostOfHost int) *idle {
	i := &idle{most: most, mostOfHost: mostOfHost, order: list.New()}
	i.routes, i.hosts = make(map[route][]*idleConn), make(map[string]*list.List)
	i.timer = time.AfterFunc(sweepInterval, i.sweep)
	i.timer.Stop()
	return i
}

// take removes and returns a connection of a route, or nil.
func (i *idle) take(r route) *idleConn {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.shut = false
	now := time.Now()
	for _, conn := range slices.Backward(i.routes[r]) {
		if now.Before(conn.until) {
			i.drop(conn)
			return conn
		}
	}
	return nil
}

// put stores a connection for reuse within a time. It closes it, or an older one, when there are too many.
func (i *idle) put(conn *idleConn, within time.Duration) {
	if surplus := i.keep(conn, within); surplus != nil {
		_ = surplus.Close()
	}
}

// keep is put that returns the connection to close, if any.
func (i *idle) keep(conn *idleConn, within time.Duration) (surplus *idleConn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shut {
		return conn
	}
	if host := i.hosts[conn.route.addr]; host != nil && host.Len() >= i.mostOfHost {
		surplus, _ = host.Front().Value.(*idleConn)
		i.drop(surplus)
	} else if i.order.Len() >= i.most {
		surplus, _ = i.order.Front().Value.(*idleConn)
		i.drop(surplus)
	}
	now := time.Now()
	conn.until = now.Add(within)
	if i.order.Len() == 0 || conn.until.Before(i.next) && now.Add(minSweep).Before(i.next) {
		i.sweepAt(earlier(now.Add(sweepInterval), conn.until))
	}
	host := i.hosts[conn.route.addr]
	if host == nil {
		host = list.New()
		i.hosts[conn.route.addr] = host
	}
	conn.element, conn.ofHost = i.order.PushBack(conn), host.PushBack(conn)
	i.routes[conn.route] = append(i.routes[conn.route], conn)
	return surplus
}

// drop removes a connection. The caller holds mu.
func (i *idle) drop(conn *idleConn) {
	i.order.Remove(conn.element)
	host := i.hosts[conn.route.addr]
	if host.Remove(conn.ofHost); host.Len() == 0 {
		delete(i.hosts, conn.route.addr)
	}
	of := i.routes[conn.route]
	n := slices.Index(of, conn)
	if of = slices.Delete(of, n, n+1); len(of) == 0 {
		delete(i.routes, conn.route)
		return
	}
	i.routes[conn.route] = of
}

// sweep closes connections whose time is over or that have unread bytes.
func (i *idle) sweep() {
	now := time.Now()
	i.closeIf(func(conn *idleConn) bool { return !now.Before(conn.until) || conn.HasUnread() })
}

// close closes all connections, and those put before the next take.
func (i *idle) close() {
	i.mu.Lock()
	i.shut = true
	i.mu.Unlock()
	i.closeIf(func(*idleConn) bool { return true })
}

// sweepAt arms the timer for a time, or for minSweep from now. The caller holds mu.
func (i *idle) sweepAt(next time.Time) {
	now := time.Now()
	if least := now.Add(minSweep); next.Before(least) {
		next = least
	}
	i.next = next
	i.timer.Reset(next.Sub(now))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// closeIf closes connections, and has the next sweep follow if there are others.
func (i *idle) closeIf(old func(*idleConn) bool) {
	i.mu.Lock()
	var closing []*idleConn
	next := time.Now().Add(sweepInterval)
	for at := i.order.Front(); at != nil; {
		conn, _ := at.Value.(*idleConn)
		at = at.Next()
		if old(conn) {
			i.drop(conn)
			closing = append(closing, conn)
		} else {
			next = earlier(next, conn.until)
		}
	}
	if i.order.Len() > 0 {
		i.sweepAt(next)
	} else {
		i.timer.Stop()
	}
	i.mu.Unlock()
	for _, conn := range closing {
		_ = conn.Close()
	}
}
