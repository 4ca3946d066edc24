package conn

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/ringback/ringback/notify/guard"
)

// Bounds of a tunnel.
const (
	// maxConnectAnswer bounds the response to CONNECT, in bytes.
	maxConnectAnswer = 16 << 10
	// MaxTunnels bounds the addresses of a host that are tried through a proxy.
	MaxTunnels = 4
)

// tunnel connects to a host through a proxy, by an address that this process resolved and the guard admits, so that DNS
// rebinding has no effect. The guard does not check the proxy.
func (d *dialer) tunnel(ctx context.Context, dial *dialRecord, proxy *url.URL, host, port string) (net.Conn, error) {
	targets, err := d.admitted(ctx, dial, host, port)
	if err != nil {
		return nil, err
	}
	targets = targets[:min(len(targets), MaxTunnels)]
	for i, target := range targets {
		var conn net.Conn
		conn, err = d.tunnelWithin(ctx, dial, proxy, target, len(targets)-i)
		failed, ok := errors.AsType[*ProxyError](err)
		if !ok || !failed.ofTarget() || ctx.Err() != nil {
			return conn, err
		}
	}
	return nil, err
}

// tunnelWithin is tunnel with a share of the remaining time, so that an unreachable address leaves time for the next
// ones.
func (d *dialer) tunnelWithin(
	ctx context.Context, dial *dialRecord, proxy *url.URL, target netip.AddrPort, left int,
) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		share, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
		ctx = share
	}
	conn, err := d.reachProxy(ctx, proxy)
	if err != nil {
		return nil, err
	}
	dial.try(conn.RemoteAddr().String())
	tunnel, err := d.ask(ctx, conn, proxy, target)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return tunnel, nil
}

// admitted resolves a host and returns the addresses that the guard admits, at least one.
func (d *dialer) admitted(ctx context.Context, dial *dialRecord, host, port string) ([]netip.AddrPort, error) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, &net.AddrError{Err: "invalid port", Addr: port}
	}
	var addrs []netip.Addr
	name := guard.NameOf(host)
	dial.lookUp(name)
	if name == "" {
		addrs = []netip.Addr{netip.MustParseAddr(host)}
	} else if addrs, err = d.resolver().LookupNetIP(ctx, "ip", host); err != nil {
		return nil, err
	}
	dial.resolve()
	var (
		targets []netip.AddrPort
		refused error
	)
	for _, addr := range addrs {
		target := netip.AddrPortFrom(addr.Unmap().WithZone(""), uint16(number))
		if err := d.Guard.CheckAddr(name, target); err == nil {
			targets = append(targets, target)
		} else if refused == nil {
			refused = err
		}
	}
	switch {
	case len(targets) > 0:
		return targets, nil
	case refused != nil:
		return nil, refused
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (d *dialer) resolver() *net.Resolver {
	if d.net.Resolver != nil {
		return d.net.Resolver
	}
	return net.DefaultResolver
}

// reachProxy connects to the proxy.
func (d *dialer) reachProxy(ctx context.Context, proxy *url.URL) (net.Conn, error) {
	conn, err := d.net.DialContext(ctx, "tcp", addrOf(proxy))
	if err != nil {
		return nil, newProxyError(ctx, "cannot be reached", err)
	}
	if proxy.Scheme == "http" {
		return conn, nil
	}
	secured := tls.Client(conn, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		RootCAs: d.roots.Load(), ServerName: proxy.Hostname(),
	})
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, newProxyError(ctx, "failed in the TLS handshake", err)
	}
	return secured, nil
}

// ask makes the proxy open a tunnel (RFC 9110 §9.3.6).
func (d *dialer) ask(ctx context.Context, conn net.Conn, proxy *url.URL, target netip.AddrPort) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	defer stop()
	var request bytes.Buffer
	fmt.Fprintf(&request, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n", target, target, d.Agent)
	if proxy.User != nil {
		password, _ := proxy.User.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
		fmt.Fprintf(&request, "Proxy-Authorization: Basic %s\r\n", credentials)
	}
	request.WriteString("\r\n")
	if _, err := conn.Write(request.Bytes()); err != nil {
		return nil, newProxyError(ctx, "did not take the request", err)
	}
	answer := bufio.NewReader(io.LimitReader(conn, maxConnectAnswer))
	status, err := readConnectAnswer(answer)
	if err != nil {
		return nil, newProxyError(ctx, "gave no answer", err)
	}
	if status < 200 || status > 299 {
		return nil, &ProxyError{What: fmt.Sprintf("answered %d %s", status, http.StatusText(status)), Status: status}
	}
	if !stop() {
		return nil, newProxyError(ctx, "answered too late", ctx.Err())
	}
	_ = conn.SetDeadline(time.Time{})
	if early := answer.Buffered(); early > 0 {
		prefix, _ := answer.Peek(early)
		return &prefixedConn{Conn: conn, prefix: prefix}, nil
	}
	return conn, nil
}

// readConnectAnswer reads the status of the proxy's final response, not its body, which may repeat credentials.
func readConnectAnswer(answer *bufio.Reader) (status int, err error) {
	for {
		//nolint:bodyclose // Close would read the body
		resp, err := http.ReadResponse(answer, &http.Request{Method: http.MethodConnect})
		if err != nil {
			return 0, err
		}
		if resp.StatusCode < 100 || resp.StatusCode > 199 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp.StatusCode, nil
		}
	}
}
