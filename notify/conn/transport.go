package conn

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/h1"
)

// maxHeaderNetHTTP is net/http's limit of a header. Over HTTP/1 an h1.HeaderLimit is reached first. Over HTTP/2 a
// header far beyond it ends the connection with all its requests, so it is above h1.MaxHeader: between the two only the
// request fails.
const maxHeaderNetHTTP = h1.MaxHeader * 3 / 2

// A Transport sends requests with one client certificate, or without: by package h1, or by net/http where h1 does not
// support them. Requests through a forward proxy are sent by net/http, since the connection to the proxy may use TLS.
type Transport struct {
	dialer        *dialer
	made          time.Time       // where generations begin
	idle          *idle           // connections of h1
	pooled, fresh *http.Transport // fresh opens a new connection for each request

	// Guarded by the mutex of the Pool.
	uses    int
	dropped bool
}

func newTransport(d *dialer) *Transport {
	return &Transport{
		dialer: d, made: time.Now(), idle: newIdle(d.MaxIdle, maxIdlePerHost),
		pooled: d.newHTTP(false), fresh: d.newHTTP(true),
	}
}

// newHTTP returns net/http's transport, which leaves connections, TLS and proxies to the dialer.
func (d *dialer) newHTTP(fresh bool) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            d.dialHTTP,
		DialTLSContext:         d.dialTLS,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		DisableKeepAlives:      fresh,
		MaxIdleConns:           d.MaxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderNetHTTP,
		// Detects a silently dead connection, shared by many attempts, earlier than TCP does.
		HTTP2: &http.HTTP2Config{
			SendPingTimeout:  15 * time.Second,
			PingTimeout:      5 * time.Second,
			WriteByteTimeout: 30 * time.Second,
			// As much as a Sender reads of a body.
			MaxReceiveBufferPerStream:     64 << 10,
			MaxReceiveBufferPerConnection: 1 << 20,
		},
	}
}

// RoundTrip implements http.RoundTripper. The request's context must be a Progress, or derived from one.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) { return t.send(r, t.pooled) }

// RoundTripFresh is RoundTrip over a new connection, closed after the response.
func (t *Transport) RoundTripFresh(r *http.Request) (*http.Response, error) {
	return t.send(r, t.fresh)
}

func (t *Transport) send(r *http.Request, others *http.Transport) (*http.Response, error) {
	p, addr := progressOf(r.Context()), addrOf(r.URL)
	if h1.Supports(r) {
		if proxy, err := t.dialer.proxy("http", addr); proxy == nil && err == nil {
			return t.sendPlain(r, p, addr, others.DisableKeepAlives)
		}
	}
	p.bound()
	if p.target == "" { // not written again: a dial of the last try may read it
		p.target = addr
	}
	r = p.traced(r)
	r.URL = labelled(r.URL, t.label(r, p))
	resp, err := others.RoundTrip(r)
	if err == nil && resp.ProtoMajor == 2 && tooLargeHTTP2(resp.Header) {
		_ = resp.Body.Close()
		return nil, h1.ErrHeaderTooLarge
	}
	if err == nil && p.counting != nil {
		p.counting.reuseWithin(reuseTime(resp.Header))
	}
	return resp, err
}

// label returns the label of the connections that a request may use: those of one generation. Over HTTP/1 they belong
// to its queue: late bytes must not be read as the response to another lane's job. Over HTTP/2 each response names its
// request.
//
// The first dial over TLS shows the protocol of a host; until then it is assumed to be HTTP/2. The queue whose dial
// showed HTTP/1 keeps the label of that dial. A request that gets an HTTP/1 connection of another queue does not use
// it; see countingConn.settle.
func (t *Transport) label(r *http.Request, p *Progress) string {
	if r.URL.Scheme == "https" {
		if queue, ok := t.dialer.http1.first(p.target); !ok || queue == p.Queue {
			return sharedLabel + t.generation(p.target, job.Queue{}).label()
		}
	}
	return queueLabel(p.Queue) + t.generation(p.target, p.Queue).label()
}

// tooLargeHTTP2 reports whether a header is beyond the limits of h1, with bytes counted as in RFC 9113 §6.5.2.
func tooLargeHTTP2(h http.Header) bool {
	bytes, lines := 0, 0
	for name, values := range h {
		lines += len(values)
		for _, value := range values {
			bytes += len(name) + len(value) + 32
		}
	}
	return bytes > h1.MaxHeader || lines > h1.MaxHeaderLines
}

// closeIdle closes idle connections, and ends dials that no request waits for.
func (t *Transport) closeIdle() {
	t.idle.close()
	t.pooled.CloseIdleConnections()
	t.fresh.CloseIdleConnections()
}
