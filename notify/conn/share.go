package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// maxShareTime is how long other requests wait for a dial, from its start: it may hang.
	maxShareTime = time.Second
	// maxShares bounds the dials that a request waits for, one after another, while each connection is full before it
	// gets a stream.
	maxShares = 3
)

// errShared is the error of a dial that was not made: its request used the connection of another one.
var errShared = errors.New("the request used the connection of another dial")

// A sharedDial is a dial over TLS that other requests wait for.
type sharedDial struct {
	started time.Time
	ended   chan struct{}
	http2   bool // it opened an HTTP/2 connection; set before ended is closed
}

// sharedDials are the newest shared dials under way, by address with its label.
type sharedDials struct {
	mu    sync.Mutex
	dials map[string]*sharedDial
}

// join returns the dial to an address. If the caller is the first, it must dial and call end.
func (s *sharedDials) join(addr string) (dial *sharedDial, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dial, ok := s.dials[addr]
	if !ok || time.Since(dial.started) >= maxShareTime {
		dial, first = &sharedDial{started: time.Now(), ended: make(chan struct{})}, true
		s.dials[addr] = dial
	}
	return dial, first
}

func (s *sharedDials) end(addr string, dial *sharedDial, http2 bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dial.http2 = http2
	close(dial.ended)
	if s.dials[addr] == dial {
		delete(s.dials, addr)
	}
}

// dialShared is the DialTLSContext of net/http's transport, which dials for each request that finds no idle connection. It gives
// the first HTTP/2 connection to all of them, and closes the others unused. So the first requests to a host, and those
// that lost a connection together, wait for one dial. If it fails, takes long or leads to HTTP/1, each request dials.
func (d *dialer) dialShared(ctx context.Context, network, addr string) (net.Conn, error) {
	p := progressOf(ctx)
	if _, http1 := d.http1.first(p.target); http1 || p.shares.Add(1) > maxShares {
		return d.dialTLS(ctx, network, addr)
	}
	dial, first := d.shared.join(addr)
	if first {
		conn, err := d.dialTLS(ctx, network, addr)
		_, http2 := conn.(*tls.Conn)
		d.shared.end(addr, dial, http2)
		return conn, err
	}
	if dial.serves(ctx, p) {
		return nil, errShared
	}
	return d.dialTLS(ctx, network, addr)
}

// serves waits for the dial of another request, and reports whether p needs none of its own. It returns true only after the
// end of p: before net/http has given p the connection, an error of its dial would fail it.
func (s *sharedDial) serves(ctx context.Context, p *Progress) bool {
	timer := time.NewTimer(maxShareTime - time.Since(s.started))
	defer timer.Stop()
	select {
	case <-s.ended:
		if !s.http2 {
			return false
		}
	case <-timer.C:
		return false
	case <-p.Done():
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
	return true
}
