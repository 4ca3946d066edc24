package notify

import (
	"cmp"
	"net/http"
	"time"
)

// A transport sends requests of attempts over a wire, and by net/http's transport where that does not serve them.
type transport struct {
	wire   *wire
	others *http.Transport
}

// newTransport makes a transport that leaves connecting, TLS and proxies to the dialer. One that is alone gives each
// request a connection of its own.
func newTransport(o Options, d *dialer, alone bool) *transport {
	most := cmp.Or(o.MaxIdleConns, 1024)
	mostOfHost := cmp.Or(o.MaxIdleConnsPerHost, min(256, most))
	return &transport{
		wire: &wire{dial: d.straight, proxy: d.proxy, idle: newIdle(most, mostOfHost), alone: alone},
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
			MaxResponseHeaderBytes: MaxHeader,
			// A connection shared by many attempts that went dead in silence must not hold them all for the minutes TCP
			// needs to notice.
			HTTP2: &http.HTTP2Config{
				SendPingTimeout:  15 * time.Second,
				PingTimeout:      5 * time.Second,
				WriteByteTimeout: 30 * time.Second,
			},
		},
	}
}

// RoundTrip is http.RoundTripper's, for requests of attempts.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if addr, ok := t.wire.serves(r); ok {
		return t.wire.send(r, addr)
	}
	a := attemptOf(r.Context())
	a.bound()
	return t.others.RoundTrip(r.WithContext(a.traced()))
}

// closeIdle closes what no attempt uses, and ends dials that none waits for.
func (t *transport) closeIdle() {
	t.wire.idle.close()
	t.others.CloseIdleConnections()
}
