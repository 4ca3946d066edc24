package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ringback/ringback/notify/guard"
)

// dialer opens guarded connections for package h1 and for net/http's transport.
//
// net/http lets a dial go on when the attempt it was made for has ended, since a later attempt may use the
// connection. So that dials to a host that swallows packets do not pile up, each still ends at the deadline of the
// attempt that began it, its TLS handshake included.
type dialer struct {
	guard       *guard.Guard
	net         net.Dialer
	dial        func(ctx context.Context, network, addr string) (net.Conn, error) // nil but in tests
	tls         *tls.Config
	certificate *tls.Certificate // ours, for receivers that ask for one; nil: none
	proxyFor    func(target *url.URL) (*url.URL, error)
	agent       string
	http1       *hostSet // that speak HTTP/1 over TLS
}

// straight is package h1's dial: there is no proxy for its targets.
func (d *dialer) straight(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := d.begin(ctx)
	defer cancel()
	host, _, err := d.allowed(addr)
	if err != nil {
		return nil, err
	}
	return d.direct(ctx, guard.NameOf(host), network, addr)
}

// plain is the transport's DialContext.
func (d *dialer) plain(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := d.begin(ctx)
	defer cancel()
	conn, err := d.connect(ctx, "http", network, withoutLabel(addr))
	if err != nil {
		return nil, err
	}
	return newCountingConn(conn), nil
}

// secure is the transport's DialTLSContext. An HTTP/2 connection is handed over bare, since the transport must see its
// type.
func (d *dialer) secure(ctx context.Context, network, addr string) (net.Conn, error) {
	a := attemptOf(ctx)
	if a == nil { // nobody's, so that nothing below has to ask
		a = &attempt{Context: ctx, start: time.Now(), limit: DefaultTimeout}
	}
	ctx, cancel := d.begin(ctx)
	defer cancel()
	addr = withoutLabel(addr)
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("split host and port: %w", err)
	}
	if err := a.mayDial(); err != nil {
		return nil, err
	}
	conn, err := d.connect(ctx, "https", network, addr)
	if err != nil {
		return nil, err
	}
	a.reach(phaseTLS)
	secured, err := d.shakeHands(ctx, conn, host)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	if secured.ConnectionState().NegotiatedProtocol == "h2" {
		d.http1.remove(a.target)
		return secured, nil
	}
	d.http1.add(a.target, a.queue)
	return newCountingConn(secured), nil
}

// begin notes that an attempt dials, and gives the dial the attempt's deadline.
func (d *dialer) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(DefaultTimeout)
	if a := attemptOf(ctx); a != nil {
		a.reach(phaseDial)
		deadline = a.deadline()
	}
	return context.WithDeadline(ctx, deadline)
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
	return host, port, d.guard.CheckName(guard.NameOf(host))
}

// direct dials the addresses that a name has, each of which must pass the guard at that moment.
func (d *dialer) direct(ctx context.Context, name, network, addr string) (net.Conn, error) {
	if d.dial != nil {
		return d.dial(ctx, network, addr)
	}
	var admitted atomic.Bool
	one := d.net
	one.ControlContext = func(_ context.Context, network, address string, _ syscall.RawConn) error {
		err := d.guard.CheckDial(name, network, address)
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
		return nil, &partlyBlockedError{blocked}
	}
	return nil, err
}

// A partlyBlockedError says that no address of a host could be used, for different reasons. It does not unwrap, so that
// it is not taken for a BlockedError.
type partlyBlockedError struct{ blocked *guard.BlockedError }

func (e *partlyBlockedError) Error() string {
	return "no admitted address of the host could be reached, and " + e.blocked.Error()
}
