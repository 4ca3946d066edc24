package conn

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/ringback/ringback/notify/h1"
)

// plainTransport sends plain HTTP requests by package h1, if h1 supports them and their host has no forward proxy: the
// connection to a proxy may use TLS.
type plainTransport struct {
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	proxy func(scheme, addr string) (*url.URL, error)
	idle  *idle
	fresh bool // a new connection for each request
}

// serves reports whether the transport supports a request, and returns its host and port.
func (t *plainTransport) serves(r *http.Request) (addr string, ok bool) {
	if !h1.Supports(r) {
		return "", false
	}
	addr = addrOf(r.URL)
	proxy, err := t.proxy("http", addr)
	return addr, proxy == nil && err == nil
}

// send sends a request to a host and port and returns the response.
func (t *plainTransport) send(r *http.Request, addr string) (*http.Response, error) {
	ctx, p := r.Context(), progressOf(r.Context())
	conn, err := t.connect(ctx, p, addr)
	if err != nil {
		return nil, err
	}
	if t.fresh {
		r = r.WithContext(ctx)
		r.Close = true
	}
	_ = conn.SetDeadline(p.deadline()) // an error shows at the next use
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	resp, err := conn.RoundTrip(r, h1.Hooks{Wrote: p.wrote, Done: func(reusable bool) {
		if stop() && reusable {
			t.idle.put(conn)
			return
		}
		_ = conn.Close()
	}})
	if err != nil {
		stop()
		_ = conn.Close()
	}
	return resp, err
}

// addrOf returns the host and port of a URL.
func addrOf(u *url.URL) string {
	host, port := u.Hostname(), u.Port()
	switch {
	case port == "" && u.Scheme == "https":
		port = "443"
	case port == "":
		port = "80"
	case len(host)+1+len(port) == len(u.Host):
		return u.Host // no brackets, and no escaped zone
	}
	return net.JoinHostPort(host, port)
}

// connect returns a connection without unread bytes: an idle one of the queue, else a new one.
func (t *plainTransport) connect(ctx context.Context, p *Progress, addr string) (*idleConn, error) {
	for !t.fresh {
		conn := t.idle.take(addr, p.Queue)
		if conn == nil {
			break
		}
		if !conn.HasUnread() {
			p.got(conn, true)
			return conn, nil
		}
		_ = conn.Close()
	}
	bare, err := t.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	conn := &idleConn{Conn: h1.NewConn(bare), addr: addr, queue: p.Queue}
	p.got(conn, false)
	return conn, nil
}

// past is a deadline in the past.
var past = time.Unix(1, 0)
