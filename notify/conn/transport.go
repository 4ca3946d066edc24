package conn

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/ringback/ringback/notify/h1"
)

// maxHeaderNetHTTP is net/http's own bound of a header. Over HTTP/1 an h1.HeaderLimit acts before it. Over HTTP/2 a header that
// goes much beyond it costs the connection and all requests on it, so it leaves some room above h1.MaxHeader, in which a
// header costs its own request alone.
const maxHeaderNetHTTP = h1.MaxHeader * 3 / 2

// A Transport sends requests with the same client certificate, or those without one.
type Transport struct {
	certificate   *tls.Certificate
	pooled, fresh *transport // fresh gives each request a connection of its own

	// Guarded by the mutex of the Pool.
	uses    int
	dropped bool
}

// RoundTrip is http.RoundTripper's. The request's context must be a Progress, or derived from one.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) { return t.pooled.RoundTrip(r) }

// RoundTripFresh is RoundTrip over a new connection, which is closed after the response.
func (t *Transport) RoundTripFresh(r *http.Request) (*http.Response, error) {
	return t.fresh.RoundTrip(r)
}

// closeIdle closes what no request uses, and ends dials that none waits for.
func (t *Transport) closeIdle() {
	t.pooled.closeIdle()
	t.fresh.closeIdle()
}

// A transport sends requests by package h1, and by net/http's transport where that does not serve them.
type transport struct {
	plain  *plainTransport
	others *http.Transport
	http1  *hostSet
}

// newTransport makes a transport that leaves connecting, TLS and proxies to the dialer. A fresh one gives each request a
// connection of its own.
func newTransport(d *dialer, fresh bool) *transport {
	return &transport{
		http1: d.http1,
		plain: &plainTransport{dial: d.dialDirect, proxy: d.proxy, idle: newIdle(d.MaxIdle, d.MaxIdlePerHost), fresh: fresh},
		others: &http.Transport{
			Proxy:                  nil,
			DialContext:            d.dialHTTP,
			DialTLSContext:         d.dialTLS,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
			DisableKeepAlives:      fresh,
			MaxIdleConns:           d.MaxIdle,
			MaxIdleConnsPerHost:    d.MaxIdlePerHost,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeaderNetHTTP,
			// A connection shared by many attempts that went dead in silence must not hold them all for the minutes TCP
			// needs to notice.
			HTTP2: &http.HTTP2Config{
				SendPingTimeout:  15 * time.Second,
				PingTimeout:      5 * time.Second,
				WriteByteTimeout: 30 * time.Second,
				// As much as a Sender reads of a body: what a receiver sends is kept here until then.
				MaxReceiveBufferPerStream:     64 << 10,
				MaxReceiveBufferPerConnection: 1 << 20,
			},
		},
	}
}

// RoundTrip is http.RoundTripper's, for requests whose context is a Progress.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if addr, ok := t.plain.serves(r); ok {
		return t.plain.send(r, addr)
	}
	p := progressOf(r.Context())
	p.bound()
	if p.target == "" { // it stays what it is: a dial that outlived the last try may read it
		p.target = addrOf(r.URL)
	}
	r = r.WithContext(p.traced())
	r.URL = labelled(r.URL, t.label(r, p))
	resp, err := t.others.RoundTrip(r)
	if err == nil && resp.ProtoMajor == 2 && tooLargeHTTP2(resp.Header) {
		_ = resp.Body.Close()
		return nil, h1.ErrHeaderTooLarge
	}
	return resp, err
}

// label is what the connections are known by that a request may use. Over HTTP/1 they are those of its queue: what a
// receiver sends late must not be taken for the answer to another lane's job. Over HTTP/2 each answer names its request.
//
// Which of the two a host speaks over TLS is known once it was dialled. Until then it is taken to be HTTP/2. The queue whose
// dial showed HTTP/1 keeps the label of that dial. A request that is given a connection of another queue over HTTP/1 all the
// same does not use it: see countingConn.settle.
func (t *transport) label(r *http.Request, p *Progress) string {
	if r.URL.Scheme == "https" {
		if queue, ok := t.http1.first(p.target); !ok || queue == p.Queue {
			return sharedLabel
		}
	}
	return queueLabel(p.Queue)
}

// tooLargeHTTP2 holds a header against the bounds of h1, with the count of bytes of RFC 9113 §6.5.2.
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

// closeIdle closes what no attempt uses, and ends dials that none waits for.
func (t *transport) closeIdle() {
	t.plain.idle.close()
	t.others.CloseIdleConnections()
}
