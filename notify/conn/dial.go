package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/ringback/ringback/notify/guard"
)

// MaxDials is how many connections over TLS are opened for one request. net/http dials again, for HTTP/2, for as long as there
// is time, when it could not give the request to the last connection: the receiver closed it, admits no request on it, or
// other requests were quicker and filled it.
const MaxDials = 5

// dialer opens guarded connections for package h1 and for net/http's transport.
//
// net/http lets a dial go on when the request it was made for has ended, since a later one may use the connection. So that
// dials to a host that swallows packets do not pile up, each still ends at the deadline of the request that began it, its TLS
// handshake included.
type dialer struct {
	Options

	net         net.Dialer
	tls         *tls.Config
	certificate *tls.Certificate // ours, for receivers that ask for one; nil: none
	http1       *hostSet         // that speak HTTP/1 over TLS
}

// dialDirect is package h1's dial: there is no proxy for its targets.
func (d *dialer) dialDirect(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := begin(ctx, progressOf(ctx))
	defer cancel()
	host, _, err := d.allowed(addr)
	if err != nil {
		return nil, err
	}
	return d.direct(ctx, guard.NameOf(host), network, addr)
}

// dialHTTP is net/http's DialContext.
func (d *dialer) dialHTTP(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := begin(ctx, progressOf(ctx))
	defer cancel()
	conn, err := d.connect(ctx, "http", network, withoutLabel(addr))
	if err != nil {
		return nil, err
	}
	return newCountingConn(conn), nil
}

// dialTLS is net/http's DialTLSContext. An HTTP/2 connection is handed over bare, since net/http must see its type.
func (d *dialer) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	p := progressOf(ctx)
	ctx, cancel := begin(ctx, p)
	defer cancel()
	addr = withoutLabel(addr)
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("split host and port: %w", err)
	}
	if p.dials.Add(1) > MaxDials {
		return nil, fmt.Errorf("connect again: %w", io.EOF)
	}
	conn, err := d.connect(ctx, "https", network, addr)
	if err != nil {
		return nil, err
	}
	p.SetPhase(PhaseTLS)
	secured, err := d.handshake(ctx, conn, host)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	if secured.ConnectionState().NegotiatedProtocol == "h2" {
		d.http1.remove(p.target)
		return secured, nil
	}
	d.http1.add(p.target, p.Queue)
	return newCountingConn(secured), nil
}

// begin notes that a request dials, and gives the dial its deadline.
func begin(ctx context.Context, p *Progress) (context.Context, context.CancelFunc) {
	p.SetPhase(PhaseDial)
	return context.WithDeadline(ctx, p.deadline())
}

// connect opens a connection to a host, through the forward proxy where there is one for it.
func (d *dialer) connect(ctx context.Context, scheme, network, addr string) (net.Conn, error) {
	host, port, err := d.allowed(addr)
	if err != nil {
		return nil, err
	}
	proxy, err := d.proxy(scheme, addr)
	if err != nil {
		return nil, err
	}
	if proxy != nil {
		return d.tunnel(ctx, proxy, host, port)
	}
	return d.direct(ctx, guard.NameOf(host), network, addr)
}

// allowed parts an address into host and port, unless the guard refuses the host by its name.
func (d *dialer) allowed(addr string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(addr)
	if err != nil {
		return "", "", fmt.Errorf("split host and port: %w", err)
	}
	return host, port, d.Guard.CheckName(guard.NameOf(host))
}

// direct dials the addresses that a name has, each of which must pass the guard at that moment.
func (d *dialer) direct(ctx context.Context, name, network, addr string) (net.Conn, error) {
	if d.Dial != nil {
		return d.Dial(ctx, network, addr)
	}
	var admitted atomic.Bool
	one := d.net
	one.ControlContext = func(_ context.Context, network, address string, _ syscall.RawConn) error {
		err := d.Guard.CheckDial(name, network, address)
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
	if blocked, ok := errors.AsType[*guard.BlockedError](err); ok && admitted.Load() {
		return nil, &PartlyBlockedError{blocked}
	}
	return nil, err
}

// A PartlyBlockedError says that no address of a host could be used, for different reasons. It does not unwrap, so that it is
// not taken for the BlockedError.
type PartlyBlockedError struct{ Blocked *guard.BlockedError }

func (e *PartlyBlockedError) Error() string {
	return "no admitted address of the host could be reached, and " + e.Blocked.Error()
}
