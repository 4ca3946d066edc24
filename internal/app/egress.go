package app

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/ringback/ringback/dispatcher/seal"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/notify"
	"github.com/ringback/ringback/notify/conn"
	"github.com/ringback/ringback/notify/guard"
)

// box returns the Box that encrypts under the secret keys.
func (o Options) box() (*seal.Box, error) {
	keys, err := seal.ParseKeys(string(o.SecretKey))
	if err != nil {
		return nil, err // it is the whole of it
	}
	return seal.New(keys...), nil
}

// ProxyURL is the URL of a forward proxy. It prints without its password.
type ProxyURL string

// ProxyNone disables proxies, also those of the environment.
const ProxyNone ProxyURL = "none"

// String returns the proxy's scheme, host and port.
func (p ProxyURL) String() string {
	if p == "" || p == ProxyNone {
		return string(p)
	}
	u, err := url.Parse(string(p))
	if err != nil || u.Host == "" {
		return logs.SecretMark
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// GoString is String in quotes.
func (p ProxyURL) GoString() string { return `"` + p.String() + `"` }

// LogValue is String.
func (p ProxyURL) LogValue() slog.Value { return slog.StringValue(p.String()) }

// MarshalText is String.
func (p ProxyURL) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// parse returns nil for ProxyNone and when the environment decides. Its error does not contain the URL.
func (p ProxyURL) parse() (*url.URL, error) {
	if p == "" || p == ProxyNone {
		return nil, nil // no URL is set
	}
	u, err := conn.ParseProxy(string(p))
	if err != nil {
		return nil, fmt.Errorf("must be a URL such as http://proxy.internal:3128, or none: %w", err)
	}
	return u, nil
}

// proxyFor returns the sender's function from a target to its proxy; nil: no proxy.
func (p ProxyURL) proxyFor() (func(*http.Request) (*url.URL, error), error) {
	switch u, err := p.parse(); {
	case err != nil:
		return nil, err
	case p == ProxyNone:
		return nil, nil
	case u != nil:
		return http.ProxyURL(u), nil
	}
	return http.ProxyFromEnvironment, nil
}

// guard returns the address guard for deliveries.
func (a *App) guard() (*guard.Guard, error) {
	own, err := netip.ParseAddrPort(a.Addr())
	if err != nil {
		return nil, fmt.Errorf("read the API's address: %w", err)
	}
	o := guard.Options{AllowPrivate: a.options.AllowPrivate, OwnAddrs: []netip.AddrPort{own}}
	if o.AllowTargets, o.AllowHosts, err = guard.ParseTargets(a.options.AllowTargets); err != nil {
		return nil, fmt.Errorf("allow-targets: %w", err)
	}
	if o.DenyTargets, o.DenyHosts, err = guard.ParseTargets(a.options.DenyTargets); err != nil {
		return nil, fmt.Errorf("deny-targets: %w", err)
	}
	return guard.New(o), nil
}

// sender returns the sender of deliveries.
func (a *App) sender(addresses *guard.Guard, maxIdle int) (*notify.Sender, error) {
	o := notify.Options{Guard: addresses, Agent: "Ringback/" + a.options.Version, MaxIdle: maxIdle}
	var err error
	if o.ProxyFor, err = a.options.Proxy.proxyFor(); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	if o.Roots, err = a.options.roots(); err != nil {
		return nil, err
	}
	sender, err := notify.New(o)
	if err != nil {
		return nil, fmt.Errorf("make the sender: %w", err)
	}
	a.watchRoots(sender)
	return sender, nil
}

// CheckFiles reads the files that the options name, except for stores.
func (o Options) CheckFiles() error {
	_, err := o.roots()
	return err
}

// roots returns the certificate authorities for receivers; nil: the system's.
func (o Options) roots() (*x509.CertPool, error) {
	if o.CAFile == "" {
		return nil, nil // none are set
	}
	roots, err := conn.RootsWith(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("ca-file: %w", err)
	}
	return roots, nil
}
