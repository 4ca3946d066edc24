package conn

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/h1"
)

// sendPlain sends a request to a host and port by package h1; fresh: over a new connection.
func (t *Transport) sendPlain(r *http.Request, p *Progress, addr string, fresh bool) (*http.Response, error) {
	ctx := r.Context()
	conn, err := t.connect(ctx, p, addr, fresh)
	if err != nil {
		return nil, err
	}
	if fresh {
		r = r.WithContext(ctx)
		r.Close = true
	}
	_ = conn.SetDeadline(p.deadline()) // an error shows at the next use
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	resp, err := conn.RoundTrip(r, h1.Hooks{Wrote: p.wrote, Answering: p.setAnswering, Done: func(
		resp *http.Response, reusable bool,
	) {
		if stop() && reusable {
			t.idle.put(conn, reuseTime(resp.Header))
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

// connect returns a connection without unread bytes: an idle one of the queue that is not of an earlier generation,
// else a new one.
func (t *Transport) connect(ctx context.Context, p *Progress, addr string, fresh bool) (*idleConn, error) {
	current, of := t.generation(addr, p.Queue), route{addr, p.Queue}
	for !fresh {
		conn := t.idle.take(of)
		if conn == nil {
			break
		}
		if conn.generation >= current && !conn.HasUnread() {
			p.got(&conn.WriteCounter, conn.dialled, true)
			return conn, nil
		}
		_ = conn.Close()
	}
	bare, err := t.dialer.dialDirect(ctx, addr)
	if err != nil {
		return nil, err
	}
	conn := &idleConn{
		Conn: h1.NewConn(bare), route: of, generation: current, dialled: p.dialing.Load(),
	}
	p.got(&conn.WriteCounter, conn.dialled, false)
	return conn, nil
}

// past is a deadline in the past.
var past = time.Unix(1, 0)

// addrOf returns the host and port of a URL.
func addrOf(u *url.URL) string {
	host, port := u.Hostname(), job.PortOf(u)
	if len(host)+1+len(port) == len(u.Host) {
		return u.Host // no brackets, and no escaped zone
	}
	return net.JoinHostPort(host, port)
}
