package conn

import (
	"bufio"
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

// tunnels serves a client of a forward proxy.
func tunnels(conn net.Conn) {
	r := bufio.NewReader(conn)
	asked, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	out, err := net.Dial("tcp", asked.Host)
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
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

// A connection in steady use is reused at first, and replaced when it has the largest age.
func TestTransport_ReplacesConnectionsByAge(t *testing.T) {
	for name, test := range map[string]struct {
		start func(*httptest.Server)
		body  int
		proto int
	}{
		"plain":        {start: (*httptest.Server).Start, body: 1, proto: 1},
		"plain, large": {start: (*httptest.Server).Start, body: h1.MaxBody + 1, proto: 1},
		"TLS":          {start: (*httptest.Server).StartTLS, body: 1, proto: 1},
		"HTTP/2":       {start: func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }, body: 1, proto: 2},
	} {
		for way, proxied := range map[string]bool{"direct": false, "tunnel": true} {
			t.Run(name+" "+way, func(t *testing.T) {
				var conns atomic.Int32
				server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
				}))
				server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
					if state == http.StateNew {
						conns.Add(1)
					}
				}
				test.start(server)
				t.Cleanup(server.Close)
				var o Options
				if server.TLS != nil {
					o.Roots = roots(server)
				}
				if proxied {
					proxy := &url.URL{Scheme: "http", Host: receiver(t, tunnels)}
					o.ProxyFor = func(*http.Request) (*url.URL, error) { return proxy, nil }
				}
				transport := newPool(t, o).Get(nil)
				for _, opened := range []int32{1, 2, 3} {
					for range 3 {
						resp, err := post(t, transport.RoundTrip, server.URL, strings.Repeat("x", test.body))
						require.NoError(t, err)
						require.Equal(t, test.proto, resp.ProtoMajor)
						require.Equal(t, opened, conns.Load())
					}
					// As if two generations had passed: at their start no request changes over.
					transport.made = time.Now().Add(-time.Duration(opened) * 2 * generationTime)
				}
			})
		}
	}
}

func TestGeneration_ChangesWithinTheLargestAge(t *testing.T) {
	for at := range 1000 {
		transport := &Transport{made: time.Now().Add(-time.Duration(at) * time.Second)}
		queue := job.Queue{Lane: string(rune('a' + at%26))}
		before := transport.generation("a.example:80", queue)
		transport.made = transport.made.Add(-maxAge)
		require.Greater(t, transport.generation("a.example:80", queue), before, at)
	}
}
