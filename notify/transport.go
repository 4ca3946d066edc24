package notify

import (
	"cmp"
	"net/http"
	"time"

	"github.com/ringback/ringback/notify/h1"
)

// maxHeaderNetHTTP is net/http's own bound of a header. Over HTTP/1 an h1.HeaderLimit acts before it. Over HTTP/2 a header that
// goes much beyond it costs the connection and all requests on it, so it leaves some room above h1.MaxHeader, in which a
// header costs its own request alone.
const maxHeaderNetHTTP = h1.MaxHeader * 3 / 2

// A transport sends requests of attempts by package h1, and by net/http's transport where that does not serve them.
type transport struct {
	plain  *plainTransport
	others *http.Transport
	http1  *hostSet
}

// newTransport makes a transport that leaves connecting, TLS and proxies to the dialer. One that is alone gives each
// request a connection of its own.
func newTransport(o Options, d *dialer, alone bool) *transport {
	most := cmp.Or(o.MaxIdleConns, 1024)
	mostOfHost := cmp.Or(o.MaxIdleConnsPerHost, min(256, most))
	return &transport{
		http1: d.http1,
		plain: &plainTransport{dial: d.straight, proxy: d.proxy, idle: newIdle(most, mostOfHost), alone: alone},
		others: &http.Transport{
			Proxy:                  nil,
			DialContext:            d.plain,
			DialTLSContext:         d.secure,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
			DisableKeepAlives:      alone,
			MaxIdleConns:           most,
			MaxIdleConnsPerHost:    mostOfHost,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeaderNetHTTP,
			// A connection shared by many attempts that went dead in silence must not hold them all for the minutes TCP
			// needs to notice.
			HTTP2: &http.HTTP2Config{
				SendPingTimeout:  15 * time.Second,
				PingTimeout:      5 * time.Second,
				WriteByteTimeout: 30 * time.Second,
				// No more than is read of a body anyway: what a receiver sends lies here until its attempt has read it.
				MaxReceiveBufferPerStream:     MaxRead,
				MaxReceiveBufferPerConnection: 1 << 20,
			},
		},
	}
}

// RoundTrip is http.RoundTripper's, for requests of attempts.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if addr, ok := t.plain.serves(r); ok {
		return t.plain.send(r, addr)
	}
	a := attemptOf(r.Context())
	a.bound()
	if a.target == "" { // it stays what it is: a dial that outlived the last try may read it
		a.target = addrOf(r.URL)
	}
	r = r.WithContext(a.traced())
	r.URL = labelled(r.URL, t.label(r, a))
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
func (t *transport) label(r *http.Request, a *attempt) string {
	if r.URL.Scheme == "https" {
		if queue, ok := t.http1.first(a.target); !ok || queue == a.queue {
			return sharedLabel
		}
	}
	return queueLabel(a.queue)
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
