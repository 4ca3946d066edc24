package notify

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/notify/h1"
	"github.com/ringback/ringback/policy"
)

// only has a Sender fail where it would use net/http's transport.
func only(s *Sender) *Sender {
	s.routes.plain.transport.others.DialContext = func(context.Context, string, string) (net.Conn, error) {
		return nil, fmt.Errorf("dialled by net/http")
	}
	return s
}

func TestPlainRequestsGoOverAWire(t *testing.T) {
	server, got := recorder(t, (*httptest.Server).Start)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	for name, url := range map[string]string{
		"address": server.URL, "name": "http://localhost:" + port + "/x?y=z", "user": "http://a:b@127.0.0.1:" + port,
	} {
		req := ask(url)
		req.Body = []byte(strings.Repeat("x", h1.MaxBody))
		result := only(newSender(t, Options{})).Deliver(t.Context(), req)
		require.Equal(t, 200, result.Status, "%s: %s", name, result.Error)
		require.Len(t, (<-got).body, h1.MaxBody)
	}
}

func TestWhatAWireDoesNotServeGoesByNetHTTP(t *testing.T) {
	server, got := recorder(t, (*httptest.Server).Start)
	req := ask(server.URL)
	req.Body = []byte(strings.Repeat("x", h1.MaxBody+1))
	require.Contains(t, only(newSender(t, Options{})).Deliver(t.Context(), req).Error, "dialled by net/http")
	require.Equal(t, 200, newSender(t, Options{}).Deliver(t.Context(), req).Status)
	require.Len(t, (<-got).body, h1.MaxBody+1)

	name := ask("http://bücher.example")
	require.Contains(t, only(newSender(t, Options{})).Deliver(t.Context(), name).Error, "dialled by net/http")
}

func TestARequestGoesToThePortOfItsURL(t *testing.T) {
	for url, addr := range map[string]string{
		"http://a.example":             "a.example:80",
		"http://a.example:":            "a.example:80",
		"http://a.example:8080/x":      "a.example:8080",
		"http://u:p@a.example:8080":    "a.example:8080",
		"http://127.0.0.1":             "127.0.0.1:80",
		"http://[::1]":                 "[::1]:80",
		"http://[::1]:8080":            "[::1]:8080",
		"http://[fe80::1%25eth0]:8080": "[fe80::1%eth0]:8080",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
		require.NoError(t, err)
		require.Equal(t, addr, addrOf(r.URL), url)
	}
}

// talk is a receiver that counts its connections and requests, and answers each request as told.
func talk(t *testing.T, answer func(n int32, conn net.Conn)) (url string, conns *atomic.Int32) {
	conns = new(atomic.Int32)
	var requests atomic.Int32
	return "http://" + receiver(t, func(conn net.Conn) {
		conns.Add(1)
		r := bufio.NewReader(conn)
		for readRequest(r) {
			answer(requests.Add(1), conn)
		}
	}), conns
}

func TestAConnectionIsKeptOnlyAfterAWholeAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		conns  int32
	}{
		"a length":          {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 1},
		"chunks":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1},
		"chunks, a trailer": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n", 1},
		"no body":           {"HTTP/1.1 204 No Content\r\n\r\n", 1},
		"an empty one":      {"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", 1},
		"a farewell":        {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 2},
		"an old server":     {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 2},
		"one that keeps on": {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 1},
		"too much":          {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok!", 2},
		"more than none":    {"HTTP/1.1 204 No Content\r\n\r\nok", 2},
		"no status at all":  {"HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nok", 2},
		"another protocol":  {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			target, conns := talk(t, func(_ int32, conn net.Conn) { _, _ = io.WriteString(conn, test.answer) })
			s := newSender(t, Options{})
			for range 2 {
				result := s.Deliver(t.Context(), ask(target))
				require.Equal(t, name == "no status at all", result.Class == policy.ClassHTTP, result.Error)
				require.Equal(t, name != "no status at all", result.Class == policy.ClassNone, result.Error)
			}
			require.Equal(t, test.conns, conns.Load())
		})
	}
}

// What came while a connection lay idle, and its end, are seen before a request is written.
func TestAnIdleConnectionThatIsNotQuietIsNotUsed(t *testing.T) {
	for name, meanwhile := range map[string]func(net.Conn){
		"bytes":   func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 299 Forged\r\nContent-Length: 0\r\n\r\n") },
		"an end":  func(conn net.Conn) { _ = conn.Close() },
		"a reset": reset,
	} {
		t.Run(name, func(t *testing.T) {
			first := make(chan net.Conn, 1)
			target, conns := talk(t, func(n int32, conn net.Conn) {
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				if n == 1 {
					first <- conn
				}
			})
			s := newSender(t, Options{})
			require.Equal(t, 200, s.Deliver(t.Context(), ask(target)).Status)
			meanwhile(<-first)
			w := s.routes.plain.transport.plain
			require.Eventually(t, func() bool {
				conn, _ := w.idle.order.Front().Value.(*idleConn)
				return conn.HasUnread()
			}, 10*time.Second, time.Millisecond)
			result := s.Deliver(t.Context(), ask(target))
			require.Equal(t, 200, result.Status, result.Error)
			require.Equal(t, int32(2), conns.Load())
			require.Equal(t, 1, w.idle.order.Len(), "the one that was not quiet is gone")
		})
	}
}

// A receiver that refuses a request by its header answers, and hangs up with the rest unread: the system says that the
// connection was reset, but the answer is there.
func TestAnAnswerCountsThoughTheRequestCouldNotBeWritten(t *testing.T) {
	s := newSender(t, Options{dialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			r := bufio.NewReader(far)
			_, _ = r.ReadString('\n')
			_ = far.SetReadDeadline(time.Unix(1, 0))
			_, _ = io.WriteString(far, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")
			_ = far.Close()
		}()
		return &cutConn{Conn: near}, nil
	}})
	req := ask("http://a.example")
	req.Body = []byte(strings.Repeat("x", h1.MaxBody))
	result := s.Deliver(t.Context(), req)
	require.Equal(t, 401, result.Status, result.Error)
	require.Equal(t, "no", string(result.Body))
	require.Zero(t, s.routes.plain.transport.plain.idle.order.Len())
}

// A cutConn takes one write.
type cutConn struct {
	net.Conn
	written bool
}

func (c *cutConn) Write(p []byte) (int, error) {
	if c.written {
		return 0, io.ErrClosedPipe
	}
	c.written = true
	return c.Conn.Write(p)
}

// An attempt that is given up leaves nothing behind: no connection that another request could be given.
func TestAnAttemptThatIsGivenUpEndsItsConnection(t *testing.T) {
	for name, begun := range map[string]string{
		"no answer": "", "half a header": "HTTP/1.1 200", "half a body": "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			url := "http://" + receiver(t, func(conn net.Conn) {
				r := bufio.NewReader(conn)
				readRequest(r)
				_, _ = io.WriteString(conn, begun)
				cancel()
				_, err := r.ReadByte()
				if err != nil {
					close(ended)
				}
			})
			s := newSender(t, Options{})
			require.Equal(t, policy.ClassShutdown, s.Deliver(ctx, ask(url)).Class)
			<-ended
			require.Zero(t, s.routes.plain.transport.plain.idle.order.Len())
		})
	}
}

// A forward proxy's connection may be TLS, of which a look at the socket shows nothing.
func TestNothingGoesOverAWireThroughAProxy(t *testing.T) {
	server, got := recorder(t, (*httptest.Server).Start)
	direct := only(newSender(t, Options{ProxyFor: func(*url.URL) (*url.URL, error) { return nil, nil }}))
	require.Equal(t, 200, direct.Deliver(t.Context(), ask(server.URL)).Status)
	<-got

	asked := make(chan string, 8)
	proxied := only(newSender(t, Options{ProxyFor: func(target *url.URL) (*url.URL, error) {
		asked <- target.String()
		return url.Parse("http://127.0.0.1:1")
	}}))
	require.Contains(t, proxied.Deliver(t.Context(), ask(server.URL)).Error, "dialled by net/http")
	require.Equal(t, server.URL, <-asked)
	require.Empty(t, got)
}

// What the system says of a write is what the result says.
func TestAFailedWriteOverAWireIsClassified(t *testing.T) {
	s := newSender(t, Options{dialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			_, _ = io.ReadFull(far, make([]byte, 5000))
			_ = far.Close()
		}()
		return &resetConn{Conn: near}, nil
	}})
	req := ask("http://a.example")
	req.Body = []byte(strings.Repeat("x", h1.MaxBody))
	result := s.Deliver(t.Context(), req)
	require.Equal(t, policy.ClassReset, result.Class, result.Error)
}

// A resetConn fails as TCP does, and not as a pipe.
type resetConn struct{ net.Conn }

func (c *resetConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		return n, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.ECONNRESET)}
	}
	return n, nil
}
