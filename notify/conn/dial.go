package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ringback/ringback/notify/guard"
)

// MaxDials bounds the TLS connections opened for one request. For HTTP/2, net/http dials again when the last connection
// could not take the request: the receiver closed it, allows no stream, or other requests filled it.
const MaxDials = 5

// dialer opens guarded connections for package h1 and for net/http's transport.
//
// net/http continues a dial after its request has ended, since a later request may use the connection. Each dial, with
// its TLS handshake, ends at the deadline of the request that started it, so that dials to an unreachable host do not
// pile up.
type dialer struct {
	Options

	net         net.Dialer
	roots       *atomic.Pointer[x509.CertPool] // in place of Options.Roots
	tls         *tls.Config
	certificate *tls.Certificate // ours, for receivers that ask for one; nil: none
	http1       *hostSet         // hosts with HTTP/1 over TLS
}

// dialDirect dials for package h1, whose targets have no proxy.
func (d *dialer) dialDirect(ctx context.Context, addr string) (net.Conn, error) {
	ctx, dial, cancel := begin(ctx, progressOf(ctx))
	defer cancel()
	host, _, err := d.allowed(addr)
	if err != nil {
		return nil, err
	}
	conn, err := d.direct(ctx, dial, guard.NameOf(host), "tcp", addr)
	if err == nil {
		dial.connect(conn)
	}
	return conn, err
}

// dialHTTP is the transport's DialContext.
func (d *dialer) dialHTTP(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, dial, cancel := begin(ctx, progressOf(ctx))
	defer cancel()
	conn, err := d.connect(ctx, dial, "http", network, withoutLabel(addr))
	if err != nil {
		return nil, err
	}
	return newCountingConn(conn, dial), nil
}

// dialTLS is the transport's DialTLSContext. It returns a plain *tls.Conn for HTTP/2, as net/http requires.
func (d *dialer) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	p := progressOf(ctx)
	ctx, dial, cancel := begin(ctx, p)
	defer cancel()
	addr = withoutLabel(addr)
	if p.dials.Add(1) > MaxDials {
		return nil, fmt.Errorf("connect again: %w", io.EOF)
	}
	conn, err := d.connect(ctx, dial, "https", network, addr)
	if err != nil {
		return nil, err
	}
	p.SetPhase(PhaseTLS)
	host, _, _ := net.SplitHostPort(addr) // connect has split it before
	secured, err := d.handshake(ctx, dial, conn, host)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	dial.secure()
	if secured.ConnectionState().NegotiatedProtocol == "h2" {
		d.http1.remove(p.target)
		return secured, nil
	}
	d.http1.add(p.target, p.Queue)
	return newCountingConn(secured, dial), nil
}

// begin records that a request dials, and returns a context with the deadline of the dial.
func begin(ctx context.Context, p *Progress) (context.Context, *dialRecord, context.CancelFunc) {
	dial := &dialRecord{started: time.Now()}
	p.dialing.Store(dial)
	p.SetPhase(PhaseDial)
	ctx, cancel := context.WithDeadline(ctx, p.deadline())
	return ctx, dial, cancel
}

// connect opens a connection to a host, through its forward proxy if it has one.
func (d *dialer) connect(ctx context.Context, dial *dialRecord, scheme, network, addr string) (net.Conn, error) {
	host, port, err := d.allowed(addr)
	if err != nil {
		return nil, err
	}
	proxy, err := d.proxy(scheme, addr)
	if err != nil {
		return nil, err
	}
	var conn net.Conn
	if proxy != nil {
		conn, err = d.tunnel(ctx, dial, proxy, host, port)
	} else {
		conn, err = d.direct(ctx, dial, guard.NameOf(host), network, addr)
	}
	if err == nil {
		dial.connect(conn)
	}
	return conn, err
}

// allowed splits an address into host and port, unless the guard refuses the host's name.
func (d *dialer) allowed(addr string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(addr)
	if err != nil {
		return "", "", fmt.Errorf("split host and port: %w", err)
	}
	return host, port, d.Guard.CheckName(guard.NameOf(host))
}

// direct dials the addresses of a name. The guard checks each one at its dial.
func (d *dialer) direct(ctx context.Context, dial *dialRecord, name, network, addr string) (net.Conn, error) {
	dial.lookUp(name)
	if d.Dial != nil {
		return d.Dial(ctx, network, addr)
	}
	var admitted atomic.Bool
	one := d.net
	one.ControlContext = func(_ context.Context, network, address string, _ syscall.RawConn) error {
		dial.resolve()
		err := d.Guard.CheckDial(name, network, address)
		if err == nil {
			dial.try(address)
			admitted.Store(true)
		}
		return err
	}
	conn, err := one.DialContext(ctx, network, addr)
	if err == nil {
		return conn, nil
	}
	// The dialer returns the first of several errors. A host with one refused address and one that does not answer is
	// not refused for good.
	if blocked, ok := errors.AsType[*guard.BlockedError](err); ok && admitted.Load() {
		return nil, &PartlyBlockedError{blocked}
	}
	return nil, err
}

// A PartlyBlockedError is the error of a host whose addresses failed for different reasons, one of them a BlockedError.
// It does not unwrap, so that it is not taken for a BlockedError.
type PartlyBlockedError struct{ Blocked *guard.BlockedError }

func (e *PartlyBlockedError) Error() string {
	return "no admitted address of the host could be reached, and " + e.Blocked.Error()
}
