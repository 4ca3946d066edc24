package redis

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

// A dialer opens the connections of one client, and closes those that have become useless without saying so: when one
// waits in vain for an answer, a host that died, or a router that forgot its connections, has mostly silenced the
// others too, and each would take another wait to be found.
type dialer struct {
	net.Dialer
	tls *tls.Config // nil: none
	// patience is how long an answer may take before its connection is held to be dead: a little less than the client's
	// timeout, and more than contexts that end early.
	patience time.Duration
	// ended stops what is being dialled, which nothing else does.
	ended context.Context //nolint:containedctx // the contexts of dials are go-redis's
	end   context.CancelFunc

	mu   sync.Mutex
	open map[*conn]struct{}
}

func newDialer(timeout, read time.Duration, config *tls.Config) *dialer {
	ended, end := context.WithCancel(context.Background())
	return &dialer{
		Dialer: net.Dialer{
			Timeout:         timeout,
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3},
		},
		tls: config, patience: read * 9 / 10, ended: ended, end: end, open: map[*conn]struct{}{},
	}
}

// dial is go-redis's Dialer.
func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	defer context.AfterFunc(d.ended, cancel)()
	raw, err := d.DialContext(ctx, network, addr)
	if err != nil {
		if ctx.Err() == nil {
			err = refusedError{err}
		}
		return nil, err //nolint:wrapcheck // go-redis looks at it
	}
	c := &conn{Conn: raw, dialer: d, addr: addr}
	c.heard.Store(time.Now().UnixNano())
	d.mu.Lock()
	d.open[c] = struct{}{}
	d.mu.Unlock()
	if d.tls == nil {
		return c, nil
	}
	config := d.tls
	if host, _, err := net.SplitHostPort(addr); err == nil && config.ServerName == "" {
		config = config.Clone()
		config.ServerName = host
	}
	secure := tls.Client(c, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = c.Close() // it is of no use
		return nil, err
	}
	return tlsConn{secure, c}, nil
}

// suspect closes the connections to an address that have heard nothing since.
func (d *dialer) suspect(addr string, since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.open {
		if c.addr == addr && c.heard.Load() < since.UnixNano() {
			delete(d.open, c)
			c.silent.Store(true)
			_ = c.Conn.Close() // it is of no use
		}
	}
}

// A conn remembers when it has heard something last.
type conn struct {
	net.Conn
	dialer *dialer
	addr   string
	heard  atomic.Int64 // Unix ns
	silent atomic.Bool  // closed, because another one heard nothing
}

// Read tells the dialer when nothing came in time. On a connection that the dialer has closed it ends, so that the call
// is made again on another.
func (c *conn) Read(p []byte) (int, error) {
	began := time.Now()
	n, err := c.Conn.Read(p)
	switch {
	case n > 0:
		c.heard.Store(time.Now().UnixNano())
	case errors.Is(err, os.ErrDeadlineExceeded) && time.Since(began) >= c.dialer.patience:
		c.dialer.suspect(c.addr, began)
	case err != nil && c.silent.Load():
		return 0, io.EOF
	}
	return n, err //nolint:wrapcheck // go-redis looks at it
}

// Close forgets the connection.
func (c *conn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	if err := c.Conn.Close(); !c.silent.Load() {
		return err //nolint:wrapcheck // as above
	}
	return nil // it was closed before
}

// SyscallConn lets go-redis look whether the other side has closed an idle connection.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	raw, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("a connection of an unexpected kind: %T", c.Conn)
	}
	return raw.SyscallConn() //nolint:wrapcheck // as above
}

// A tlsConn is a connection with TLS whose state go-redis can look at before it uses it again.
type tlsConn struct {
	*tls.Conn
	raw *conn
}

// Close says goodbye, unless the connection was closed before.
func (c tlsConn) Close() error {
	if err := c.Conn.Close(); !c.raw.silent.Load() {
		return err //nolint:wrapcheck // as above
	}
	return nil
}

// SyscallConn answers for the connection below. What waits there to be read is no reason to give the connection up: it
// may be TLS's own.
func (c tlsConn) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.raw.SyscallConn()
	return aliveConn{raw}, err
}

// An aliveConn's Read tells whether the connection is still open, and reads nothing.
type aliveConn struct{ syscall.RawConn }

func (c aliveConn) Read(func(fd uintptr) bool) error { return isOpen(c.RawConn) }

// A refusedError is a connection that could not be had. Where it sees that, go-redis dials again and again for one call;
// our callers have pauses of their own, and nobody else has the keys of a server that is gone.
type refusedError struct{ err error }

func (e refusedError) Error() string { return e.err.Error() }
