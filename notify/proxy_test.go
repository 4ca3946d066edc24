package notify

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/notify/conn"
	"github.com/ringback/ringback/notify/guard"
	"github.com/ringback/ringback/policy"
)

// forwardProxy supports CONNECT only, and records its targets.
type forwardProxy struct {
	addr string

	mu    sync.Mutex
	asked []*http.Request
}

// newForwardProxy returns a forward proxy on loopback that connects to route(target). It responds with 502 to an empty
// route.
func newForwardProxy(t *testing.T, route func(target string) string) *forwardProxy {
	t.Helper()
	return newForwardProxyOver(t, route, func(conn net.Conn) net.Conn { return conn })
}

// newForwardProxyOver wraps the connections of its clients.
func newForwardProxyOver(t *testing.T, route func(target string) string, wrap func(net.Conn) net.Conn) *forwardProxy {
	p := new(forwardProxy)
	p.addr = receiver(t, func(conn net.Conn) { p.serve(wrap(conn), route) })
	return p
}

func (p *forwardProxy) serve(conn net.Conn, route func(target string) string) {
	r := bufio.NewReader(conn)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, req)
	p.mu.Unlock()
	to := route(req.Host)
	if to == "" {
		_, _ = io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
		return
	}
	out, err := net.Dial("tcp", to)
	if err != nil {
		_, _ = io.WriteString(conn, "HTTP/1.1 504 Gateway Timeout\r\n\r\n")
		return
	}
	defer func() { _ = out.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n")
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(conn, out)
		_ = conn.Close()
	}()
	_, _ = io.Copy(out, r)
	_ = out.Close()
	<-back
}

// targets returns the requested hosts.
func (p *forwardProxy) targets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var hosts []string
	for _, req := range p.asked {
		hosts = append(hosts, req.Method+" "+req.Host)
	}
	return hosts
}

// proxyAlways returns a ProxyFor with one proxy for all targets.
func proxyAlways(t *testing.T, proxy string) func(*http.Request) (*url.URL, error) {
	t.Helper()
	u, err := conn.ParseProxy(proxy)
	require.NoError(t, err)
	return func(*http.Request) (*url.URL, error) { return u, nil }
}

// fixedResolver returns a resolver with the same addresses for every name.
func fixedResolver(addrs ...string) *net.Resolver {
	return resolverOf(func() []string { return addrs })
}

func TestProxy_GetsTheCheckedAddress(t *testing.T) {
	cert, root := certificate(t, "shop.example", time.Now().Add(time.Hour))
	for _, test := range []struct {
		name, scheme string
		start        func(*httptest.Server)
		proto        int
	}{
		{"http", "http", (*httptest.Server).Start, 1},
		{"https", "https", (*httptest.Server).StartTLS, 1},
		{"HTTP/2", "https", func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, got := recordingServer(t, func(s *httptest.Server) {
				s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
				test.start(s)
			})
			proxy := newForwardProxy(t, func(string) string { return server.Listener.Addr().String() })
			var askedFor atomic.Pointer[url.URL]
			s := newSender(t, Options{
				Guard:    guard.New(guard.Options{}),
				Resolver: fixedResolver("8.8.8.8"),
				Roots:    roots(root),
				Agent:    "Ringback/7",
				ProxyFor: func(r *http.Request) (*url.URL, error) {
					askedFor.Store(r.URL)
					return url.Parse("http://us%40er:pa%3Ass@" + proxy.addr)
				},
			})
			for range 3 {
				result := s.Deliver(t.Context(), newRequest(test.scheme+"://shop.example:8443/hooks?a=1"))
				require.Equal(t, 200, result.Status, result.Error)
				r := <-got
				require.Equal(t, "shop.example:8443", r.Host, "the receiver is addressed by its name")
				require.Equal(t, "/hooks?a=1", r.RequestURI)
				require.Equal(t, test.proto, r.ProtoMajor)
				require.Empty(t, r.Header.Get("Proxy-Authorization"))
				if test.scheme == "https" {
					require.Equal(t, "shop.example", r.TLS.ServerName)
				}
			}
			require.Equal(t, []string{"CONNECT 8.8.8.8:8443"}, proxy.targets(), "one tunnel, kept for all attempts")
			asked := proxy.asked[0]
			name, password, ok := (&http.Request{
				Header: http.Header{"Authorization": asked.Header["Proxy-Authorization"]},
			}).BasicAuth()
			require.True(t, ok)
			require.Equal(t, "us@er pa:ss", name+" "+password)
			require.Equal(t, "Ringback/7", asked.Header.Get("User-Agent"))
			require.Equal(t, &url.URL{Scheme: test.scheme, Host: "shop.example:8443"}, askedFor.Load())
		})
	}
}

func TestProxy_MayUseTLS(t *testing.T) {
	server, got := recordingServer(t, (*httptest.Server).StartTLS)
	cert, root := certificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	proxy := newForwardProxyOver(t, func(string) string { return server.Listener.Addr().String() },
		func(conn net.Conn) net.Conn {
			return tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}})
		})
	o := Options{
		Roots: roots(root, server.Certificate()), ProxyFor: proxyAlways(t, "https://"+proxy.addr),
		Resolver: fixedResolver("8.8.8.8"),
	}
	result := newSender(t, o).Deliver(t.Context(), newRequest("https://example.com/"))
	require.Equal(t, 200, result.Status, result.Error)
	require.Equal(t, "example.com", (<-got).Host)

	o.Roots = roots(server.Certificate())
	result = newSender(t, o).Deliver(t.Context(), newRequest("https://example.com/"))
	require.Equal(t, policy.ClassProxy, result.Class, result.Error)
	require.Contains(t, result.Error, "unknown authority")
}

// The name is public at the first attempt and private at the second: nothing is sent, also not through a proxy.
func TestProxy_ResistsDNSRebinding(t *testing.T) {
	server, got := recordingServer(t, (*httptest.Server).Start)
	proxy := newForwardProxy(t, func(string) string { return server.Listener.Addr().String() })
	var lookups atomic.Int32
	s := newSender(t, Options{
		Guard:    guard.New(guard.Options{}),
		ProxyFor: proxyAlways(t, "http://"+proxy.addr),
		Resolver: resolverOf(func() []string {
			if lookups.Add(1) == 1 {
				return []string{"8.8.8.8"}
			}
			return []string{"10.0.0.5"}
		}),
	})
	require.Equal(t, 200, s.Deliver(t.Context(), newRequest("http://shop.example/")).Status)
	<-got
	s.Close() // so that the next attempt looks the name up
	result := s.Deliver(t.Context(), newRequest("http://shop.example/"))
	require.Equal(t, policy.ClassBlocked, result.Class, result.Error)
	require.Contains(t, result.Error, "10.0.0.5 may not be called: it is a private address")
	require.Equal(t, []string{"CONNECT 8.8.8.8:80"}, proxy.targets())
	require.Empty(t, got)
}

func TestProxy_GuardChecksTargets(t *testing.T) {
	for name, test := range map[string]struct {
		guard    guard.Options
		url      string
		resolved []string
		class    policy.ErrorClass
		targets  []string
	}{
		"a private literal": {guard.Options{}, "http://10.0.0.5/", nil, policy.ClassBlocked, nil},
		"a private name": {
			guard.Options{},
			"http://shop.example/",
			[]string{"192.168.1.1", "169.254.169.254"},
			policy.ClassBlocked, nil,
		},
		"loopback":         {guard.Options{}, "http://127.0.0.1:1/", nil, policy.ClassBlocked, nil},
		"a mapped literal": {guard.Options{}, "http://[::ffff:10.0.0.5]/", nil, policy.ClassBlocked, nil},
		"a denied name": {
			guard.Options{DenyHosts: []string{"*.example"}},
			"http://SHOP.example./",
			[]string{"8.8.8.8"},
			policy.ClassBlocked, nil,
		},
		"a denied network": {
			guard.Options{DenyTargets: []netip.Prefix{netip.MustParsePrefix("8.8.0.0/16")}},
			"http://shop.example/",
			[]string{"8.8.8.8"},
			policy.ClassBlocked, nil,
		},
		"an allowed name": {
			guard.Options{AllowHosts: []string{"shop.example"}},
			"http://shop.example/",
			[]string{"10.0.0.5"},
			policy.ClassNone,
			[]string{"CONNECT 10.0.0.5:80"},
		},
		"one admitted address of several": {
			guard.Options{},
			"http://shop.example/",
			[]string{"10.0.0.5", "8.8.8.8"},
			policy.ClassNone,
			[]string{"CONNECT 8.8.8.8:80"},
		},
		"a literal": {
			guard.Options{}, "http://8.8.8.8:81/", nil, policy.ClassNone, []string{"CONNECT 8.8.8.8:81"},
		},
		"IPv6": {guard.Options{}, "http://[2606:4700::1111]/", nil, policy.ClassNone, []string{
			"CONNECT [2606:4700::1111]:80",
		}},
		"no such name":   {guard.Options{}, "http://shop.example/", nil, policy.ClassDNS, nil},
		"no such port":   {guard.Options{}, "http://8.8.8.8:99999/", nil, policy.ClassInvalid, nil},
		"a zone is none": {guard.Options{}, "http://[fe80::1%25eth0]/", nil, policy.ClassBlocked, nil},
	} {
		server, _ := recordingServer(t, (*httptest.Server).Start)
		proxy := newForwardProxy(t, func(string) string { return server.Listener.Addr().String() })
		s := newSender(t, Options{
			Guard: guard.New(test.guard), Resolver: fixedResolver(test.resolved...),
			ProxyFor: proxyAlways(t, "http://"+proxy.addr),
		})
		result := s.Deliver(t.Context(), newRequest(test.url))
		require.Equal(t, test.class, result.Class, "%s: %s", name, result.Error)
		require.Equal(t, test.targets, proxy.targets(), name)
		s.Close()
	}
}

func TestProxy_TriesAnotherAddress(t *testing.T) {
	server, _ := recordingServer(t, (*httptest.Server).Start)
	proxy := newForwardProxy(t, func(target string) string {
		if target == "8.8.4.4:80" {
			return server.Listener.Addr().String()
		}
		return ""
	})
	o := Options{
		Guard: guard.New(guard.Options{}), Resolver: fixedResolver("8.8.8.8", "8.8.4.4"),
		ProxyFor: proxyAlways(t, "http://"+proxy.addr),
	}
	result := newSender(t, o).Deliver(t.Context(), newRequest("http://shop.example/"))
	require.Equal(t, 200, result.Status, result.Error)
	require.Subset(t, []string{"CONNECT 8.8.8.8:80", "CONNECT 8.8.4.4:80"}, proxy.targets())

	o.Resolver = fixedResolver("1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4", "1.1.1.5", "1.1.1.6")
	before := len(proxy.targets())
	result = newSender(t, o).Deliver(t.Context(), newRequest("http://shop.example/"))
	require.Equal(t, policy.ClassProxy, result.Class, result.Error)
	require.Contains(t, result.Error, "502")
	require.Len(t, proxy.targets(), before+conn.MaxTunnels, "no more than a few are tried")
}

func TestClassify_FailedProxies(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	says := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.WriteString(conn, text)
			}
		}
	}
	repeats := func(conn net.Conn) {
		if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = fmt.Fprintf(conn, "%s topsecret\r\n\r\n", r.Header.Get("Proxy-Authorization"))
		}
	}
	tests := map[string]struct {
		serve func(net.Conn)
		text  string
	}{
		"not there": {nil, "cannot be reached: connection refused"},
		"wants a password": {
			says("HTTP/1.1 407 topsecret\r\nContent-Length: 9\r\n\r\ntopsecret"),
			"answered 407 Proxy Authentication Required",
		},
		"keeps the body " +
			"back": {
			func(conn net.Conn) { says("HTTP/1.1 407 No\r\nContent-Length: 9\r\n\r\n")(conn); holdOpen(conn) },
			"answered 407",
		},
		"refuses":             {says("HTTP/1.1 403 No\r\n\r\n"), "answered 403 Forbidden"},
		"fails":               {says("HTTP/1.1 500 No\r\n\r\n"), "answered 500 Internal Server Error"},
		"cannot reach it":     {says("HTTP/1.1 502 No\r\n\r\n"), "answered 502 Bad Gateway"},
		"redirects":           {says("HTTP/1.1 302 No\r\nLocation: http://topsecret/\r\n\r\n"), "answered 302 Found"},
		"switches":            {says("HTTP/1.1 101 No\r\n\r\n"), "answered 101"},
		"an unknown status":   {says("HTTP/1.1 799 No\r\n\r\n"), "answered 799"},
		"garbage":             {says("SSH-2.0-OpenSSH topsecret\r\n"), "what it sent is no HTTP"},
		"repeats the request": {repeats, "what it sent is no HTTP"},
		"hangs up":            {says(""), "gave no answer: the connection ended"},
		"resets":              {reset, ""},
		"a header for ever": {says("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 64<<10) +
			"\r\n\r\n"), "gave no answer"},
		"interim for ever": {says(strings.Repeat("HTTP/1.1 103 Early\r\n\r\n", 8<<10)), "gave no answer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			addr := closed.Addr().String()
			if test.serve != nil {
				addr = receiver(t, test.serve)
			}
			for _, scheme := range []string{"http", "https"} {
				s := newSender(t, Options{Guard: guard.New(guard.Options{}), ProxyFor: proxyAlways(t,
					"http://someone:topsecret@"+addr)})
				result := s.Deliver(t.Context(), newRequest(scheme+"://8.8.8.8/?topsecret"))
				require.Equal(t, policy.ClassProxy, result.Class, result.Error)
				require.Zero(t, result.Status)
				require.Contains(t, result.Error, "the forward proxy ")
				require.Contains(t, result.Error, test.text)
				require.NotContains(t, result.Error, "topsecret")
				require.NotContains(t, result.Error, "c29tZW9uZTp0b3BzZWNyZXQ", "nor in the form in which it is sent")
			}
		})
	}
}

func TestClassify_UnknownProxyName(t *testing.T) {
	for name, proxyFor := range map[string]func(*http.Request) (*url.URL, error){
		"an error": func(*http.Request) (*url.URL, error) { return nil, errors.New("topsecret") },
		"another scheme": func(*http.Request) (*url.URL, error) {
			return url.Parse("socks5://someone:topsecret@127.0.0.1:1")
		},
		"no host": func(*http.Request) (*url.URL, error) { return url.Parse("http://:80") },
		"no such name": func(*http.Request) (*url.URL, error) {
			return url.Parse("http://someone:topsecret@proxy.invalid:80")
		},
	} {
		s := newSender(t, Options{Guard: guard.New(guard.Options{}), ProxyFor: proxyFor, Resolver: fixedResolver()})
		result := s.Deliver(t.Context(), newRequest("http://8.8.8.8/"))
		require.Equal(t, policy.ClassProxy, result.Class, "%s: %s", name, result.Error)
		require.NotContains(t, result.Error, "topsecret")
	}
}

func TestProxy_WithoutOneDialsDirectly(t *testing.T) {
	server, got := recordingServer(t, (*httptest.Server).Start)
	s := newSender(t, Options{ProxyFor: func(*http.Request) (*url.URL, error) { return nil, nil }})
	require.Equal(t, 200, s.Deliver(t.Context(), newRequest(server.URL)).Status)
	<-got
	s = newSender(t,
		Options{Guard: guard.New(guard.Options{}), ProxyFor: func(*http.Request) (*url.URL, error) { return nil, nil }})
	require.Equal(t, policy.ClassBlocked, s.Deliver(t.Context(), newRequest(server.URL)).Class)
}

func TestProxy_ThatNeverAnswersTimesOut(t *testing.T) {
	addr := receiver(t, holdOpen)
	for _, scheme := range []string{"http", "https"} {
		s := newSender(t, Options{
			Guard: guard.New(guard.Options{}), Resolver: fixedResolver("8.8.8.8", "8.8.4.4"),
			ProxyFor: proxyAlways(t, scheme+"://"+addr),
		})
		result := deliver(t, s, "https://shop.example/", 300*time.Millisecond)
		require.Equal(t, policy.ClassTimeoutDial, result.Class, result.Error)
		require.Contains(t, result.Error, "the limit of 300ms for the whole attempt")

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		result = s.Deliver(ctx, newRequest("https://shop.example/"))
		require.Equal(t, policy.ClassShutdown, result.Class, result.Error)
	}
}

// Bytes after the proxy's response, in the same packet, come from the receiver.
func TestProxy_KeepsBytesAfterItsResponse(t *testing.T) {
	proxy := receiver(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 299 Yes\r\nContent-Length: "+
				"70000\r\n\r\n\x15\x03\x03\x00\x02\x02\x46")
			holdOpen(conn)
		}
	})
	s := newSender(t, Options{Guard: guard.New(guard.Options{}), ProxyFor: proxyAlways(t, "http://"+proxy)})
	result := s.Deliver(t.Context(), newRequest("https://8.8.8.8/"))
	require.Equal(t, policy.ClassTLSVersion, result.Class, "the receiver's alert: %s", result.Error)
}
