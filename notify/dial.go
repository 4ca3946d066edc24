package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// dialer opens guarded connections for the transport.
//
// The transport lets a dial go on when the attempt it was made for has ended, since a later attempt may use the
// connection. So that dials to a host that swallows packets do not pile up, each still ends at the deadline of the
// attempt that began it, its TLS handshake included.
type dialer struct {
	guard *Guard
	net   net.Dialer
	dial  func(ctx context.Context, network, addr string) (net.Conn, error) // nil but in tests
	tls   *tls.Config
}

// plain is the transport's DialContext.
func (d *dialer) plain(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := d.begin(ctx)
	defer cancel()
	conn, err := d.connect(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: conn}, nil
}

// secure is the transport's DialTLSContext. An HTTP/2 connection is handed over bare, since the transport must see its
// type.
func (d *dialer) secure(ctx context.Context, network, addr string) (net.Conn, error) {
	a := attemptOf(ctx)
	ctx, cancel := d.begin(ctx)
	defer cancel()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("split host and port: %w", err)
	}
	conn, err := d.connect(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if a != nil {
		a.reach(phaseTLS)
	}
	config := d.tls.Clone()
	config.ServerName = host
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, &handshakeError{err}
	}
	if secured.ConnectionState().NegotiatedProtocol == "h2" {
		return secured, nil
	}
	return &meteredConn{Conn: secured}, nil
}

// begin notes that an attempt dials, and gives the dial the attempt's deadline.
func (d *dialer) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(DefaultTimeout)
	if a := attemptOf(ctx); a != nil {
		a.reach(phaseDial)
		deadline = a.start.Add(a.limit)
	}
	return context.WithDeadline(ctx, deadline)
}

// connect dials the addresses that a name has, each of which must pass the guard at that moment.
func (d *dialer) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	if d.dial != nil {
		return d.dial(ctx, network, addr)
	}
	var admitted atomic.Bool
	one := d.net
	one.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
		err := d.guard.Control(ctx, network, address, c)
		if err == nil {
			admitted.Store(true)
		}
		return err
	}
	conn, err := one.DialContext(ctx, network, addr)
	if err == nil {
		return conn, nil
	}
	// The dialer reports the first failure of several. A host of which one address is refused and another just does
	// not answer is not refused for good.
	if blocked, ok := errors.AsType[*BlockedError](err); ok && admitted.Load() {
		return nil, &partlyBlockedError{blocked}
	}
	return nil, err
}

// A handshakeError is what ended a TLS handshake.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }

// A partlyBlockedError says that no address of a host could be used, for different reasons. It does not unwrap, so that
// it is not taken for a BlockedError.
type partlyBlockedError struct{ blocked *BlockedError }

func (e *partlyBlockedError) Error() string {
	return "no admitted address of the host could be reached, and " + e.blocked.Error()
}

// A meteredConn observes what net/http's HTTP/1 writes to a connection: that alone tells whether a request that failed
// can have reached the peer, and whether it was sent whole. httptrace tells of net/http's own buffer instead. It lies
// above TLS, so that handshakes and alerts do not count.
type meteredConn struct {
	net.Conn
	written atomic.Int64
	failed  atomic.Bool // a write was cut off
}

func (c *meteredConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if n > 0 {
		c.written.Add(int64(n))
	}
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}
