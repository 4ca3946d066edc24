package conn

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/h1"
)

var errByNetHTTP = errors.New("dialled by net/http")

// withoutNetHTTP makes a Pool fail where it would use net/http's transport.
func withoutNetHTTP(p *Pool) *Pool {
	p.plain.pooled.DialContext = func(context.Context, string, string) (net.Conn, error) {
		return nil, errByNetHTTP
	}
	return p
}

func newServer(t *testing.T) (server *httptest.Server, got *atomic.Int64) {
	t.Helper()
	got = new(atomic.Int64)
	server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got.Add(n)
	}))
	t.Cleanup(server.Close)
	return server, got
}

func TestTransport_SendsPlainRequestsByH1(t *testing.T) {
	server, got := newServer(t)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	for name, url := range map[string]string{
		"address": server.URL, "name": "http://localhost:" + port + "/x?y=z", "user": "http://a:b@127.0.0.1:" + port,
	} {
		got.Store(0)
		resp, err := post(t, withoutNetHTTP(newPool(t, Options{})).Get(nil).RoundTrip, url,
			strings.Repeat("x", h1.MaxBody))
		require.NoError(t, err, name)
		require.Equal(t, 200, resp.StatusCode, name)
		require.EqualValues(t, h1.MaxBody, got.Load())
	}
}

func TestTransport_SendsUnsupportedRequestsByNetHTTP(t *testing.T) {
	server, got := newServer(t)
	body := strings.Repeat("x", h1.MaxBody+1)
	_, err := post(t, withoutNetHTTP(newPool(t, Options{})).Get(nil).RoundTrip, server.URL, body)
	require.ErrorIs(t, err, errByNetHTTP)
	_, err = post(t, newPool(t, Options{}).Get(nil).RoundTrip, server.URL, body)
	require.NoError(t, err)
	require.EqualValues(t, h1.MaxBody+1, got.Load())

	_, err = post(t, withoutNetHTTP(newPool(t, Options{})).Get(nil).RoundTrip, "http://bücher.example", "x")
	require.ErrorIs(t, err, errByNetHTTP)
}

// A forward proxy's connection may use TLS, whose state the socket does not show.
func TestTransport_SendsProxiedRequestsByNetHTTP(t *testing.T) {
	server, got := newServer(t)
	direct := withoutNetHTTP(newPool(t, Options{ProxyFor: func(*http.Request) (*url.URL, error) { return nil, nil }}))
	_, err := post(t, direct.Get(nil).RoundTrip, server.URL, "x")
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Load())

	asked := make(chan string, 8)
	proxied := withoutNetHTTP(newPool(t, Options{ProxyFor: func(r *http.Request) (*url.URL, error) {
		asked <- r.URL.String()
		return url.Parse("http://127.0.0.1:1")
	}}))
	_, err = post(t, proxied.Get(nil).RoundTrip, server.URL, "x")
	require.ErrorIs(t, err, errByNetHTTP)
	require.Equal(t, server.URL, <-asked)
	require.EqualValues(t, 1, got.Load())
}

func TestAddrOf_IsTheHostAndPortOfAURL(t *testing.T) {
	for text, addr := range map[string]string{
		"http://a.example":             "a.example:80",
		"http://a.example:":            "a.example:80",
		"http://a.example:8080/x":      "a.example:8080",
		"http://u:p@a.example:8080":    "a.example:8080",
		"https://a.example":            "a.example:443",
		"http://127.0.0.1":             "127.0.0.1:80",
		"http://[::1]":                 "[::1]:80",
		"http://[::1]:8080":            "[::1]:8080",
		"http://[fe80::1%25eth0]:8080": "[fe80::1%eth0]:8080",
	} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		require.Equal(t, addr, addrOf(u), text)
	}
}

// Bytes on an idle connection, and its end, are detected before a request is written.
func TestTransport_UsesNoIdleConnectionThatHasUnread(t *testing.T) {
	for name, meanwhile := range map[string]func(net.Conn){
		"bytes": func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 299 Forged\r\nContent-Length: 0\r\n\r\n")
		},
		"an end":  func(conn net.Conn) { _ = conn.Close() },
		"a reset": reset,
	} {
		t.Run(name, func(t *testing.T) {
			first := make(chan net.Conn, 1)
			var conns, requests atomic.Int32
			target := "http://" + receiver(t, func(conn net.Conn) {
				conns.Add(1)
				for r := bufio.NewReader(conn); readRequest(r); {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					if requests.Add(1) == 1 {
						first <- conn
					}
				}
			})
			p := newPool(t, Options{})
			_, err := post(t, p.Get(nil).RoundTrip, target, "x")
			require.NoError(t, err)
			meanwhile(<-first)
			idle := p.plain.idle
			conn, _ := idle.order.Front().Value.(*idleConn)
			require.Eventually(t, conn.HasUnread, 5*time.Minute, time.Millisecond)
			resp, err := post(t, p.Get(nil).RoundTrip, target, "x")
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
			require.Equal(t, int32(2), conns.Load())
			require.Equal(t, 1, idle.order.Len(), "the one with unread bytes is gone")
		})
	}
}

// A connection that is not reusable, or whose request was cancelled, is not kept.
func TestTransport_KeepsNoConnectionOfABrokenRequest(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		cancel bool
	}{
		"an end":        {answer: "HTTP/1.1 401 No\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"},
		"no answer":     {cancel: true},
		"half a header": {answer: "HTTP/1.1 200", cancel: true},
		"half a body":   {answer: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok", cancel: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan struct{})
			target := "http://" + receiver(t, func(conn net.Conn) {
				r := bufio.NewReader(conn)
				readRequest(r)
				_, _ = io.WriteString(conn, test.answer)
				if test.cancel {
					cancel()
				}
				_, _ = r.ReadByte()
				close(ended)
			})
			p := newPool(t, Options{})
			progress := &Progress{Context: ctx, Start: time.Now(), Limit: 2 * time.Minute}
			r, err := http.NewRequestWithContext(progress, http.MethodPost, target, nil)
			require.NoError(t, err)
			resp, err := p.Get(nil).RoundTrip(r)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			require.Equal(t, test.cancel, err != nil, err)
			<-ended
			require.Zero(t, p.plain.idle.order.Len())
		})
	}
}

// A new connection may use HTTP/2, if the receiver supports it by then.
func TestTransport_FreshConnectionMayUseHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	p := newPool(t, Options{Roots: roots(server)})
	for range 3 {
		resp, err := post(t, p.Get(nil).RoundTripFresh, server.URL, "x")
		require.NoError(t, err)
		require.Equal(t, 2, resp.ProtoMajor)
	}
}

func TestDialTLS_BoundsConnectionsForOneRequest(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	t.Cleanup(server.Close)
	config := &tls.Config{Certificates: server.TLS.Certificates}
	addr := sharedLabel + "." + receiver(t, func(raw net.Conn) {
		conn := tls.Server(raw, config)
		_ = conn.Handshake()
		_ = conn.Close()
	})
	dial, progress := newPool(t, Options{Roots: roots(server)}).plain.pooled.DialTLSContext, newProgress(t)
	for range MaxDials {
		conn, err := dial(progress, "tcp", addr)
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, conn.Close())
	}
	_, err := dial(progress, "tcp", addr)
	require.ErrorIs(t, err, io.EOF)
	conn, err := dial(t.Context(), "tcp", addr)
	require.NoError(t, err, "an unused transport is not counted")
	require.NoError(t, conn.Close())
}

func TestPool_BoundsTransports(t *testing.T) {
	var conns atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = discardLog
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			conns.Add(-1)
		default:
		}
	}
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	p := newPool(t, Options{Roots: roots(server)})
	shown := server.TLS.Certificates[0]
	deliver := func(c *tls.Certificate) {
		transport := p.Get(c)
		defer p.Put(transport)
		resp, err := post(t, transport.RoundTrip, server.URL, "x")
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
	}
	first, busy := shown, shown // equal, but other pointers
	deliver(&first)
	under := p.Get(&busy) // a request under way
	deliver(&busy)
	for range maxTransports - 1 {
		c := shown
		deliver(&c)
	}
	require.Len(t, p.certified, maxTransports)
	require.Nil(t, p.certified[&first], "the one that was used longest ago is dropped")
	require.NotNil(t, p.certified[&busy])
	last := shown
	deliver(&last)
	require.Nil(t, p.certified[&busy])
	require.Eventually(t, func() bool { return conns.Load() <= maxTransports }, 5*time.Minute, time.Millisecond)

	// A Transport dropped during a request leaves no open connections.
	_, err := post(t, under.RoundTrip, server.URL, "x")
	require.NoError(t, err)
	require.Equal(t, int32(maxTransports+1), conns.Load())
	p.Put(under)
	require.Eventually(t, func() bool { return conns.Load() == maxTransports }, 5*time.Minute, time.Millisecond)

	deliver(&first) // again, over a new connection
	require.Len(t, p.certified, maxTransports)
	p.Close()
	require.Eventually(t, func() bool { return conns.Load() == 0 }, 5*time.Minute, time.Millisecond)
}

// A connection that was dialled for a request which got another one meanwhile serves a later request.
func TestTransport_UsesConnectionsThatServedNoRequestYet(t *testing.T) {
	for scheme, start := range map[string]func(*httptest.Server){
		"http": (*httptest.Server).Start, "https": (*httptest.Server).StartTLS,
	} {
		t.Run(scheme, func(t *testing.T) {
			arrived, answer := make(chan struct{}, 4), make(chan struct{}, 4)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				arrived <- struct{}{}
				<-answer
			}))
			start(server)
			t.Cleanup(server.Close)
			var o Options
			if server.TLS != nil {
				o.Roots = roots(server)
			}
			var dials atomic.Int32
			dialling, dial, over := make(chan struct{}, 8), make(chan struct{}), make(chan struct{})
			o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				switch dials.Add(1) {
				case 1:
				case 2:
					dialling <- struct{}{}
					<-dial
				default:
					<-over
					return nil, io.EOF
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
			transport := newPool(t, o).Get(nil)
			t.Cleanup(func() { close(over) })
			t.Cleanup(func() { close(answer) })
			result := make(chan error, 4)
			send := func() {
				p := newProgress(t)
				p.Queue = job.Queue{Namespace: "default", Topic: "t", Lane: "a"}
				go func() {
					// not by package h1
					_, err := postOf(t, p, transport.RoundTrip, server.URL, strings.Repeat("x", h1.MaxBody+1))
					result <- err
				}()
			}
			wantArrival := func() {
				t.Helper()
				select {
				case <-arrived:
				case err := <-result:
					require.NoError(t, err)
				}
			}
			send()
			wantArrival()
			send()
			<-dialling
			answer <- struct{}{}
			require.NoError(t, <-result)
			wantArrival() // over the first connection
			answer <- struct{}{}
			require.NoError(t, <-result)
			close(dial)
			send()
			send()
			wantArrival()
			wantArrival()
			for range 2 {
				answer <- struct{}{}
			}
			for range 2 {
				require.NoError(t, <-result)
			}
		})
	}
}
