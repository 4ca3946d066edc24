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

// dialTimeout bounds the dial of a proxy's target.
const dialTimeout = time.Minute

// A Proxy forwards connections to a server, or to several in turns. It is safe for concurrent use. Stall and Cut apply
// to all accepted connections; a connection that received a response is accepted.
type Proxy struct {
	listener net.Listener
	ctx      context.Context // dials end with it
	done     chan struct{}   // closed when nothing more is accepted

	mu      sync.Mutex
	targets []string // the first is that of the next connection
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
	p := &Proxy{
		targets: []string{target}, listener: l, ctx: ctx, done: make(chan struct{}),
		links: make(map[*link]bool),
	}
	go p.accept()
	tb.Cleanup(func() {
		cancel()
		_ = l.Close() // nothing was written
		<-p.done
		p.Cut()
	})
	return p
}

// Addr returns host:port, for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Lead leads new connections to other targets, in turns. Open connections stay.
func (p *Proxy) Lead(targets ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets = targets
}

// Stall stops forwarding on all open connections without closing them, like a NAT that lost its state. New connections
// work.
func (p *Proxy) Stall() {
	p.mu.Lock()
	links := slices.Collect(maps.Keys(p.links))
	p.mu.Unlock()
	for _, l := range links {
		l.stall()
		l.pumps.Wait() // no bytes are in transit
	}
}

// Cut closes all open connections, silent ones too. New connections work.
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

// Block stops forwarding on new connections once they are accepted, like a hanging server. Open connections work.
func (p *Proxy) Block() { p.block(true) }

// Unblock ends Block.
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

// serve registers a connection under the lock, so that later calls of Stall, Cut and Block apply to it.
func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &link{client: client}
	if !p.blocked {
		d := net.Dialer{Timeout: dialTimeout}
		target := p.targets[0]
		p.targets = append(slices.Clone(p.targets[1:]), target)
		server, err := d.DialContext(p.ctx, "tcp", target)
		if err != nil {
			l.close() // the client sees a refused connection
			return
		}
		l.server = server
		l.pumps.Go(func() { p.pump(l, l.client, l.server) })
		l.pumps.Go(func() { p.pump(l, l.server, l.client) })
	}
	p.links[l] = true
}

// pump forwards one direction until a side closes or the link is stalled.
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

// link is a client's connection and its connection to the server, nil under Block.
type link struct {
	client, server net.Conn
	pumps          sync.WaitGroup
}

// stall ends the pumps, by a past deadline, and leaves both sides open.
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
