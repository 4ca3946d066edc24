package conn

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
)

// ParseProxy parses the URL of a forward proxy: http or https, a host, an optional port (default 80 or 443) and
// optional credentials. The error contains no part of the URL.
func ParseProxy(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("the proxy's URL cannot be read")
	}
	if err := checkProxy(u); err != nil {
		return nil, err
	}
	if (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the proxy's URL has more than a scheme, a host and a port")
	}
	return u, nil
}

func checkProxy(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("the proxy's URL is neither http nor https")
	}
	if _, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16); err != nil || u.Hostname() == "" {
		return errors.New("the proxy's URL names no host, or an invalid port")
	}
	return nil
}

// proxy returns the forward proxy of a target, or nil.
func (d *dialer) proxy(scheme, addr string) (*url.URL, error) {
	if d.ProxyFor == nil {
		return nil, nil
	}
	proxy, err := d.ProxyFor(&http.Request{URL: &url.URL{Scheme: scheme, Host: addr}})
	if err != nil { // its text may contain the proxy's password
		return nil, &ProxyError{What: "that leads to the host cannot be determined"}
	}
	if proxy == nil {
		return nil, nil
	}
	if err := checkProxy(proxy); err != nil {
		return nil, &ProxyError{What: "is not usable: " + err.Error()}
	}
	return proxy, nil
}

// A ProxyError is an error between us and the proxy. Its text contains no credentials and nothing that the proxy wrote,
// since a proxy may repeat credentials.
type ProxyError struct {
	What   string // completes "the forward proxy …"
	Status int    // of the proxy's response; zero: there was none
	Err    error  // the cause, if it is an error of a connection
}

// newProxyError returns the error of the proxy, or of the context.
func newProxyError(ctx context.Context, what string, err error) error {
	return &ProxyError{What: what, Err: cmp.Or(ctx.Err(), err)}
}

func (e *ProxyError) Error() string { return "the forward proxy " + e.What }
func (e *ProxyError) Unwrap() error { return e.Err }

// TimedOut reports whether the limit passed or the caller cancelled.
func (e *ProxyError) TimedOut() bool {
	timeout, ok := errors.AsType[net.Error](e.Err)
	_, unresolved := errors.AsType[*net.DNSError](e.Err)
	return errors.Is(e.Err, context.Canceled) || ok && timeout.Timeout() && !unresolved
}

// ofTarget reports whether another address of the host may work.
func (e *ProxyError) ofTarget() bool {
	return e.TimedOut() || e.Status >= http.StatusBadGateway && e.Status <= http.StatusGatewayTimeout
}
