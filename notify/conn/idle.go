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
	// idleTimeout is how long a connection is kept without use.
	idleTimeout = 90 * time.Second
	// idleLook is how often those are looked for that the receivers have closed, while any connection is idle.
	idleLook = 5 * time.Second
)

// idle is the pool of connections of package h1. Each is given on in its own queue alone: what a receiver sends late
// must not be taken for the answer to another lane's job. Of a host and a queue, the one that was put there last is taken
// first, so that those which a quieter hour needs no more come of age. When there are too many, the oldest are closed.
type idle struct {
	most, mostOfHost int // at least 1

	mu    sync.Mutex
	hosts map[string][]*idleConn // by host and port, the oldest first; none is empty
	order *list.List             // of *idleConn, the oldest first
	timer *time.Timer            // of the next look
	set   bool                   // the timer runs
	shut  bool                   // no request has come since close
}

// An idleConn is a connection that idle keeps between requests.
type idleConn struct {
	*h1.Conn

	addr  string
	queue job.Queue // whose requests go over it

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

// take removes and returns a connection of a queue to a host, or nil.
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

// put stores a connection for reuse, and closes it or an older one if there are too many.
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

// arm has the timer run, if it does not. mu is held.
func (i *idle) arm() {
	if !i.set {
		i.timer.Reset(idleLook)
		i.set = true
	}
}

// oldest is the connection that has been idle longest, or nil. mu is held.
func (i *idle) oldest() *idleConn {
	if front := i.order.Front(); front != nil {
		conn, _ := front.Value.(*idleConn)
		return conn
	}
	return nil
}

// drop takes the nth connection of a host out. mu is held.
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

// sweep closes what has been idle for too long, and what the receivers have closed or spoilt.
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

// close closes all connections, and those that are put before the next take.
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
