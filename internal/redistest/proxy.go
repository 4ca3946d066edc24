package redistest

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// dialTimeout is how long a proxy's target may take to accept a connection.
const dialTimeout = 5 * time.Second

// A Proxy forwards connections to a server, until told otherwise. It is safe for concurrent use. What it is told holds
// for the connections that it had accepted by then; one that carried an answer is such a one.
type Proxy struct {
	target   string
	listener net.Listener
	ctx      context.Context // dials end with it
	done     chan struct{}   // closed when nothing more is accepted

	mu      sync.Mutex
	blocked bool
	links   map[*link]bool
}

// StartProxy runs a proxy in front of target (host:port) until the test ends.
func StartProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("start a proxy: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Proxy{target: target, listener: l, ctx: ctx, done: make(chan struct{}), links: make(map[*link]bool)}
	go p.accept()
	tb.Cleanup(func() {
		cancel()
		_ = l.Close() // nothing was written
		<-p.done
		p.Cut()
	})
	return p
}

// Addr is host:port, for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Stall makes all connections that are open go silent for good, which neither side is told of: as a NAT that forgot
// them. New ones work.
func (p *Proxy) Stall() {
	p.mu.Lock()
	links := slices.Collect(maps.Keys(p.links))
	p.mu.Unlock()
	for _, l := range links {
		l.stall()
		l.pumps.Wait() // nothing is on its way any more
	}
}

// Cut closes all connections that are open, silent ones too. New ones work.
func (p *Proxy) Cut() {
	p.mu.Lock()
	links := p.links
	p.links = make(map[*link]bool)
	p.mu.Unlock()
	for l := range links {
		l.close()
		l.pumps.Wait()
	}
}

// Block makes new connections go silent as soon as they are accepted, for good: as a server that hangs. Those that are
// open work on.
func (p *Proxy) Block() { p.block(true) }

// Unblock makes new connections work again.
func (p *Proxy) Unblock() { p.block(false) }

func (p *Proxy) block(blocked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocked = blocked
}

func (p *Proxy) accept() {
	defer close(p.done)
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // the listener is closed
		}
		p.serve(client)
	}
}

// serve takes a connection in, with the lock held so that it is there for whatever the proxy is told next.
func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &link{client: client}
	if !p.blocked {
		d := net.Dialer{Timeout: dialTimeout}
		server, err := d.DialContext(p.ctx, "tcp", p.target)
		if err != nil {
			l.close() // which tells the client that nobody is there
			return
		}
		l.server = server
		l.pumps.Go(func() { p.pump(l, l.client, l.server) })
		l.pumps.Go(func() { p.pump(l, l.server, l.client) })
	}
	p.links[l] = true
}

// pump forwards what one side says, until either is gone or the link is stalled.
func (p *Proxy) pump(l *link, from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err == nil {
			_, err = to.Write(buf[:n])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return // stalled: both sides stay open
		}
		if err != nil {
			l.close()
			p.mu.Lock()
			delete(p.links, l)
			p.mu.Unlock()
			return
		}
	}
}

// A link is a connection of a client with its connection to the server, which a silent one may have none of.
type link struct {
	client, server net.Conn
	pumps          sync.WaitGroup
}

// stall ends the pumps and leaves both sides open. No deadline is ever set but this, which has passed.
func (l *link) stall() {
	for _, conn := range []net.Conn{l.client, l.server} {
		if conn != nil {
			_ = conn.SetDeadline(time.Unix(1, 0)) // it may be closed
		}
	}
}

// close closes both sides.
func (l *link) close() {
	for _, conn := range []net.Conn{l.client, l.server} {
		if conn != nil {
			_ = conn.Close() // it may be closed already
		}
	}
}
