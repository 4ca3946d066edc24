package notify

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// maxWireBody is the longest body that goes over a wire, in bytes: one that the system takes at once, whatever the receiver
// reads of it. Of a longer one a receiver may answer without reading the rest: net/http reads while it writes, a wire does
// not.
const maxWireBody = 16 << 10

// errSpokeFirst is what becomes of a request to a receiver that sent something before it was asked.
var errSpokeFirst = errors.New("the receiver spoke before it was asked, which ended the connection")

// A wire sends requests by HTTP/1.1 without TLS, one at a time over a connection, and all of it in the caller's goroutine.
// net/http has two goroutines a connection and hands each request from one to the next; that costs more than what they do
// (BenchmarkDeliver). Answers are read by net/http's own ReadResponse.
//
// Since nobody reads a connection that lies idle, whatever has come over it meanwhile, its end or bytes that are no answer,
// is seen when it is taken or when idle looks through what lies there, and it is closed then. The look and the first byte
// of the request are some microseconds apart: what comes later cannot be told from an answer. What TLS has read ahead the
// look would not show: nothing goes through a forward proxy here.
type wire struct {
	dial  func(ctx context.Context, network, addr string) (net.Conn, error)
	proxy func(scheme, addr string) (*url.URL, error)
	idle  *idle
	alone bool // each request has a connection of its own
}

// serves reports whether a request may go over a wire, and to which host and port. Hosts that are written otherwise in DNS
// or in a request than in a URL are left to net/http, and so are those to which a forward proxy leads, or for which that
// cannot be told.
func (w *wire) serves(r *http.Request) (addr string, ok bool) {
	if !looks || r.URL.Scheme != "http" || r.ContentLength > maxWireBody || !plainHostPort(r.Host) {
		return "", false
	}
	addr = addrOf(r.URL)
	proxy, err := w.proxy("http", addr)
	return addr, proxy == nil && err == nil
}

// send makes the exchange of an attempt's request with the host and port that it goes to.
func (w *wire) send(r *http.Request, addr string) (*http.Response, error) {
	ctx, a := r.Context(), attemptOf(r.Context())
	conn, err := w.connect(ctx, a, addr)
	if err != nil {
		return nil, err
	}
	if w.alone {
		r = r.WithContext(ctx)
		r.Close = true
	}
	_ = conn.SetDeadline(a.deadline()) // fails where using it does
	stop := context.AfterFunc(ctx, conn.abort)
	resp, err := conn.exchange(a, r)
	if err != nil {
		stop()
		_ = conn.Close()
		return nil, err
	}
	answer := &wireBody{ReadCloser: resp.Body, conn: conn, over: func(whole bool) {
		if stop() && whole && !r.Close && !resp.Close && resp.StatusCode >= 200 && conn.in.Buffered() == 0 {
			w.idle.put(conn)
			return
		}
		_ = conn.Close()
	}}
	if resp.Body == http.NoBody {
		answer.end(true)
		return resp, nil
	}
	resp.Body = answer
	return resp, nil
}

// addrOf is the host and port that a URL leads to.
func addrOf(u *url.URL) string {
	host, port := u.Hostname(), u.Port()
	switch {
	case port == "" && u.Scheme == "https":
		port = "443"
	case port == "":
		port = "80"
	case len(host)+1+len(port) == len(u.Host):
		return u.Host // which has no brackets, and no zone in its other spelling
	}
	return net.JoinHostPort(host, port)
}

// connect gives an attempt a connection over which nothing has come that nobody asked for: one of its queue that lies idle,
// else a new one.
func (w *wire) connect(ctx context.Context, a *attempt, addr string) (*wireConn, error) {
	for !w.alone {
		conn := w.idle.take(addr, a.queue)
		if conn == nil {
			break
		}
		if conn.quiet() {
			a.got(&conn.traffic, true)
			return conn, nil
		}
		_ = conn.Close()
	}
	bare, err := w.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	conn := newWireConn(bare, addr, a.queue)
	a.got(&conn.traffic, false)
	return conn, nil
}

// A wireBody is an answer's body. Its end, or that nobody wants the rest, decides about the connection.
type wireBody struct {
	io.ReadCloser

	conn *wireConn
	over func(whole bool) // nil when it was called
}

func (b *wireBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		b.end(true)
	default:
		b.end(false)
		err = b.conn.why(err)
	}
	return n, err
}

// Close reads nothing more: net/http's own body would read on to its end.
func (b *wireBody) Close() error {
	b.end(false)
	return nil
}

func (b *wireBody) end(whole bool) {
	if over := b.over; over != nil {
		b.over = nil
		over(whole)
	}
}

// past is a deadline that is over.
var past = time.Unix(1, 0)
