package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A dialer opens the connections of one client, and closes silent ones together. When a reply times out, the host died
// or a router dropped its state, so the other connections are usually dead as well. Each would cost another timeout.
type dialer struct {
	net.Dialer
	tls *atomic.Pointer[tls.Config] // nil: no TLS
	// silentAfter is how long a reply may take before its connection counts as dead: 90 % of the read timeout.
	silentAfter time.Duration
	// ended cancels dials in progress.
	ended context.Context //nolint:containedctx // the contexts of dials are go-redis's
	end   context.CancelFunc
	conns *connections
}

// connections are the open connections of a Client, by all its dialers.
type connections struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

func newConnections() *connections { return &connections{open: make(map[*conn]struct{})} }

func newDialer(timeout, read time.Duration, config *atomic.Pointer[tls.Config], conns *connections) *dialer {
	ended, end := context.WithCancel(context.Background())
	return &dialer{
		Dialer: net.Dialer{
			Timeout: timeout,
			KeepAliveConfig: net.KeepAliveConfig{
				Enable: true, Idle: 5 * time.Second,
				Interval: 2 * time.Second, Count: 3,
			},
		},
		tls: config, silentAfter: read * 9 / 10, ended: ended, end: end, conns: conns,
	}
}

// dial implements redis.Options.Dialer.
func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	defer context.AfterFunc(d.ended, cancel)()
	raw, err := d.DialContext(ctx, network, addr)
	if err != nil {
		if ctx.Err() == nil {
			err = refusedError{err}
		}
		return nil, err // go-redis inspects it
	}
	c := &conn{Conn: raw, dialer: d, addr: addr}
	c.received.Store(time.Now().UnixNano())
	d.conns.mu.Lock()
	d.conns.open[c] = struct{}{}
	d.conns.mu.Unlock()
	if d.tls == nil {
		return c, nil
	}
	config := d.tls.Load()
	if host, _, err := net.SplitHostPort(addr); err == nil && config.ServerName == "" {
		config = config.Clone()
		config.ServerName = host
	}
	secure := tls.Client(c, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close() // the handshake's error is returned
		return nil, err
	}
	return tlsConn{secure, c}, nil
}

// closeSilent closes the dialer's connections to an address that have received nothing since.
func (d *dialer) closeSilent(addr string, since time.Time) {
	d.conns.drop(func(c *conn) bool { return c.dialer == d && c.addr == addr && c.received.Load() < since.UnixNano() })
}

// closeAll closes all connections.
func (o *connections) closeAll() { o.drop(func(*conn) bool { return true }) }

// drop closes connections. Calls that wait for a reply on one of them are repeated on another.
func (o *connections) drop(which func(*conn) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.open {
		if which(c) {
			delete(o.open, c)
			c.dropped.Store(true)
			_ = c.Conn.Close() // nothing is lost with it: the call is repeated
		}
	}
}

// A conn records when it last received data.
type conn struct {
	net.Conn
	dialer   *dialer
	addr     string
	received atomic.Int64 // Unix ns
	dropped  atomic.Bool  // closed by drop
}

// Read closes silent connections after a timeout. On a connection that was closed so it returns EOF, so that go-redis
// repeats the call on another one.
func (c *conn) Read(p []byte) (int, error) {
	began := time.Now()
	n, err := c.Conn.Read(p)
	switch {
	case n > 0:
		c.received.Store(time.Now().UnixNano())
	case errors.Is(err, os.ErrDeadlineExceeded) && time.Since(began) >= c.dialer.silentAfter:
		c.dialer.closeSilent(c.addr, began)
	case err != nil && c.dropped.Load():
		return 0, io.EOF
	}
	return n, err // go-redis inspects it
}

// Close removes the connection from its dialer.
func (c *conn) Close() error {
	c.dialer.conns.mu.Lock()
	delete(c.dialer.conns.open, c)
	c.dialer.conns.mu.Unlock()
	if err := c.Conn.Close(); !c.dropped.Load() {
		return err
	}
	return nil // drop closed it
}

// SyscallConn lets go-redis check whether the peer has closed an idle connection.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	raw, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("a connection of an unexpected kind: %T", c.Conn)
	}
	return raw.SyscallConn()
}

// A tlsConn is a TLS connection whose state go-redis can check before it reuses it.
type tlsConn struct {
	*tls.Conn
	raw *conn
}

// Close closes the TLS connection; one that drop closed is no error.
func (c tlsConn) Close() error {
	if err := c.Conn.Close(); !c.raw.dropped.Load() {
		return err
	}
	return nil
}

// SyscallConn returns the TCP connection. Unread data there is no reason to discard it: it may be part of TLS.
func (c tlsConn) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.raw.SyscallConn()
	return aliveConn{raw}, err
}

// An aliveConn's Read checks whether the connection is still open, and reads nothing.
type aliveConn struct{ syscall.RawConn }

func (c aliveConn) Read(func(fd uintptr) bool) error { return isOpen(c.RawConn) }

// A refusedError hides that dialling failed: go-redis would dial several times for one call. Our callers back off
// themselves, and no other server has the keys.
type refusedError struct{ err error }

func (e refusedError) Error() string { return e.err.Error() }
