package notify

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/notify/conn"
	"github.com/ringback/ringback/policy"
)

// failedDial returns an error as package net wraps a system error.
func failedDial(call string, errno syscall.Errno, addr string) error {
	return &net.OpError{
		Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)),
		Err: os.NewSyscallError(call, errno),
	}
}

func TestShortage_HasItsOwnClass(t *testing.T) {
	const v4, v6 = "192.0.2.1:443", "[::1]:443"
	for name, err := range map[string]error{
		"descriptors of the process": failedDial("socket", syscall.EMFILE, v4),
		"descriptors of the machine": failedDial("socket", syscall.ENFILE, v4),
		"buffers":                    failedDial("connect", syscall.ENOBUFS, v4),
		"memory":                     failedDial("socket", syscall.ENOMEM, v4),
		"ports":                      failedDial("connect", syscall.EADDRNOTAVAIL, v4),
		"routes":                     failedDial("connect", syscall.EAGAIN, v4),
		"descriptors for name servers": &net.DNSError{
			Err: "dial udp 192.0.2.53:53: socket: too many open files", Name: "a.example", IsTemporary: true,
		},
		"descriptors for a " +
			"proxy": &conn.ProxyError{What: "cannot be reached", Err: failedDial("socket", syscall.EMFILE, v4)},
	} {
		for _, secure := range []string{"http", "https"} {
			s := newSender(t,
				Options{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, err }})
			result := s.Deliver(t.Context(), newRequest(secure+"://a.example/"))
			require.Equal(t, policy.ClassLocalResources, result.Class, "%s: %s", name, result.Error)
			require.NotEmpty(t, result.Error)
		}
	}
	for name, err := range map[string]error{
		"no name":                &net.DNSError{Err: "no such host", Name: "a.example", IsNotFound: true},
		"a read that is to wait": &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.EAGAIN)},
		"no listener":            failedDial("connect", syscall.ECONNREFUSED, v6),
	} {
		_, ours := asShortage(err)
		require.False(t, ours, name)
	}
}

// A host without IPv6 returns EADDRNOTAVAIL for IPv6 addresses: not a shortage of ports.
func TestShortage_IgnoresMissingAddressFamilies(t *testing.T) {
	probe, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.MustParseAddrPort("[::1]:443")))
	if err == nil {
		_ = probe.Close()
	}
	_, ours := asShortage(failedDial("connect", syscall.EADDRNOTAVAIL, "[::1]:443"))
	require.Equal(t, !errors.Is(err, syscall.EADDRNOTAVAIL), ours)
}

// Idle connections may be the cause of the shortage.
func TestShortage_ClosesIdleConnections(t *testing.T) {
	served := receiver(t, func(conn net.Conn) {
		for in := bufio.NewReader(conn); readRequest(in); {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	var short atomic.Bool
	var dialled []net.Conn
	s := newSender(t, Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if short.Load() {
			return nil, failedDial("socket", syscall.EMFILE, "192.0.2.1:80")
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, served)
		dialled = append(dialled, conn)
		return conn, err
	}})
	require.Equal(t, 200, s.Deliver(t.Context(), newRequest("http://a.example/")).Status)
	short.Store(true)
	require.Equal(t, policy.ClassLocalResources, s.Deliver(t.Context(), newRequest("http://b.example/")).Class)
	require.Len(t, dialled, 1)
	_, err := dialled[0].Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
	short.Store(false)
	require.Equal(t, 200, s.Deliver(t.Context(), newRequest("http://b.example/")).Status)
}

// An unreachable forward proxy fails the attempt: it may last, and affect some receivers only.
func TestShortage_IgnoresUnreachableProxies(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	away := l.Addr().String()
	require.NoError(t, l.Close())
	s := newSender(t,
		Options{ProxyFor: func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: "http", Host: away}, nil }})
	require.Equal(t, policy.ClassProxy, s.Deliver(t.Context(), newRequest("http://1.1.1.1/")).Class)
}
