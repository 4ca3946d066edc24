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
	// idleTimeout is the time after which an unused connection is closed.
	idleTimeout = 90 * time.Second
	// idleLook is the interval of the check for connections closed by receivers.
	idleLook = 5 * time.Second
)

// idle is the pool of idle connections of package h1. A connection serves one queue: late bytes must not be read as the
// response to another lane's job. Connections of a host and queue are reused last in, first out, so that surplus ones
// reach idleTimeout. When there are too many, the oldest are closed.
type idle struct {
	most, mostOfHost int // at least 1

	mu    sync.Mutex
	hosts map[string][]*idleConn // by host and port, the oldest first; none is empty
	order *list.List             // of *idleConn, the oldest first
	timer *time.Timer            // of the next sweep
	set   bool                   // the timer runs
	shut  bool                   // closed, and no request since
}

// idleConn is a connection between two requests.
type idleConn struct {
	*h1.Conn

	addr  string
	queue job.Queue // the only queue that uses it

	// Guarded by the mutex of idle.
	since   time.Time
	element *list.Element
}

func newIdle(most, mostOfHost int) *idle {
	i := &idle{most: most, mostOfHost: mostOfHost, hosts: make(map[string][]*idleConn), order: list.New()}
	i.timer = time.AfterFunc(idleLook, i.sweep)
	i.timer.Stop()
	return i
}

// take removes and returns a queue's connection to a host, or nil.
func (i *idle) take(addr string, queue job.Queue) *idleConn {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.shut = false
	of := i.hosts[addr]
	for n := len(of) - 1; n >= 0; n-- {
		if conn := of[n]; conn.queue == queue {
			i.drop(conn, n)
			return conn
		}
	}
	return nil
}

// put stores a connection for reuse. It closes it, or an older one, when there are too many.
func (i *idle) put(conn *idleConn) {
	if old := i.keep(conn); old != nil {
		_ = old.Close()
	}
}

// keep stores conn for reuse. It returns the connection to close instead, if any.
func (i *idle) keep(conn *idleConn) (old *idleConn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shut {
		return conn
	}
	if of := i.hosts[conn.addr]; len(of) >= i.mostOfHost {
		old = of[0]
		i.drop(old, 0)
	} else if i.order.Len() >= i.most {
		old = i.oldest()
		i.drop(old, 0)
	}
	conn.since = time.Now()
	conn.element = i.order.PushBack(conn)
	i.hosts[conn.addr] = append(i.hosts[conn.addr], conn)
	i.arm()
	return old
}

// arm starts the timer unless it runs. The caller holds mu.
func (i *idle) arm() {
	if !i.set {
		i.timer.Reset(idleLook)
		i.set = true
	}
}

// oldest returns the connection that was idle longest, or nil. The caller holds mu.
func (i *idle) oldest() *idleConn {
	if front := i.order.Front(); front != nil {
		conn, _ := front.Value.(*idleConn)
		return conn
	}
	return nil
}

// drop removes the n-th connection of a host. The caller holds mu.
func (i *idle) drop(conn *idleConn, n int) {
	i.order.Remove(conn.element)
	conn.element = nil
	of := i.hosts[conn.addr]
	if len(of) == 1 {
		delete(i.hosts, conn.addr)
		return
	}
	copy(of[n:], of[n+1:])
	of[len(of)-1] = nil
	i.hosts[conn.addr] = of[:len(of)-1]
}

// sweep closes connections that were idle for idleTimeout or that have unread bytes.
func (i *idle) sweep() {
	i.mu.Lock()
	i.set = false
	now := time.Now()
	var old []*idleConn
	for at := i.order.Front(); at != nil; {
		conn, _ := at.Value.(*idleConn)
		at = at.Next()
		if now.Sub(conn.since) >= idleTimeout || conn.HasUnread() {
			i.drop(conn, slices.Index(i.hosts[conn.addr], conn))
			old = append(old, conn)
		}
	}
	if i.order.Len() > 0 {
		i.arm()
	}
	i.mu.Unlock()
	for _, conn := range old {
		_ = conn.Close()
	}
}

// close closes all connections, and those put before the next take.
func (i *idle) close() {
	i.mu.Lock()
	i.shut = true
	i.timer.Stop()
	i.set = false
	var old []*idleConn
	for conn := i.oldest(); conn != nil; conn = i.oldest() {
		i.drop(conn, 0)
		old = append(old, conn)
	}
	i.mu.Unlock()
	for _, conn := range old {
		_ = conn.Close()
	}
}
