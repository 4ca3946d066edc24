package notify

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
)

// ParseProxy reads the URL of a forward proxy: http or https, a host, perhaps a port (80 and 443 otherwise), perhaps a
// name and a password. The error tells nothing of it.
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
		return errors.New("the proxy's URL names no host, or a port that is none")
	}
	return nil
}

// proxy is the one that leads to a target; nil: none does.
func (d *dialer) proxy(scheme, addr string) (*url.URL, error) {
	if d.proxyFor == nil {
		return nil, nil
	}
	proxy, err := d.proxyFor(&url.URL{Scheme: scheme, Host: addr})
	if err != nil { // its text may hold the proxy's password
		return nil, &proxyError{text: "which forward proxy leads to the host cannot be told"}
	}
	if proxy == nil {
		return nil, nil
	}
	if err := checkProxy(proxy); err != nil {
		return nil, &proxyError{text: err.Error()}
	}
	return proxy, nil
}

// A proxyError says what went wrong between us and the proxy, and never with which credentials.
type proxyError struct {
	text   string
	status int   // of the proxy's answer; zero: there was none
	err    error // what ran out of time; nil: nothing did
}

// newProxyError says what became of the proxy, and why, unless it was for want of resources of ours.
func newProxyError(ctx context.Context, what string, err error) error {
	if text, ok := asShortage(err); ok {
		return &shortageError{text}
	}
	e := &proxyError{text: "the forward proxy " + what}
	timeout, ok := errors.AsType[net.Error](err)
	_, unresolved := errors.AsType[*net.DNSError](err)
	switch {
	case ctx.Err() != nil:
		e.err = ctx.Err()
	case ok && timeout.Timeout() && !unresolved:
		e.err = err
	default:
		e.text += ": " + reason(err)
	}
	return e
}

// reason is what an error of a connection to the proxy says beyond whom it was about. It repeats nothing of what the proxy
// wrote, which may be what it was sent.
func reason(err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "its name does not resolve"
	}
	for _, known := range errnos {
		if errors.Is(err, known.err) {
			return known.text
		}
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Err.Error()
	}
	if _, text := tlsFailure(err, false); text != "" {
		return text
	}
	return "what it sent is no HTTP"
}

func (e *proxyError) Error() string { return e.text }
func (e *proxyError) Unwrap() error { return e.err }

// ofTarget reports whether another address of the same host may fare better.
func (e *proxyError) ofTarget() bool {
	return e.err != nil || e.status >= http.StatusBadGateway && e.status <= http.StatusGatewayTimeout
}
