package notify

import (
	"bufio"
	"context"
	"io"
	"net"
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

// countingReceiver is a receiver that counts its connections and requests, and responds by a function.
func countingReceiver(t *testing.T, answer func(n int32, conn net.Conn)) (url string, conns *atomic.Int32) {
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

func TestReuse_OnlyAfterACompleteResponse(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		conns  int32
	}{
		"a length": {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 1},
		"chunks":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1},
		"chunks, a trailer": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nok\r\n0\r\nX: " +
			"y\r\n\r\n", 1},
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
			target, conns := countingReceiver(t,
				func(_ int32, conn net.Conn) { _, _ = io.WriteString(conn, test.answer) })
			s := newSender(t, Options{})
			for range 2 {
				result := s.Deliver(t.Context(), newRequest(target))
				require.Equal(t, name == "no status at all", result.Class == policy.ClassHTTP, result.Error)
				require.Equal(t, name != "no status at all", result.Class == policy.ClassNone, result.Error)
			}
			require.Equal(t, test.conns, conns.Load())
		})
	}
}

// A receiver that refuses a request by its header responds and closes the connection with the rest unread: the write
// fails with a reset, but the response can be read.
func TestDeliver_ReturnsAResponseToATruncatedRequest(t *testing.T) {
	s := newSender(t, Options{Dial: func(context.Context, string, string) (net.Conn, error) {
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
	req := newRequest("http://a.example")
	req.Body = []byte(strings.Repeat("x", h1.MaxBody))
	result := s.Deliver(t.Context(), req)
	require.Equal(t, 401, result.Status, result.Error)
	require.Equal(t, "no", string(result.Body))
}

// cutConn accepts one write.
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

// A cancelled attempt leaves no connection that another request could use.
func TestReuse_CancelledAttemptsEndTheirConnections(t *testing.T) {
	for name, begun := range map[string]string{
		"no answer": "", "half a header": "HTTP/1.1 200",
		"half a body": "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok",
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
			require.Equal(t, policy.ClassShutdown, s.Deliver(ctx, newRequest(url)).Class)
			<-ended
		})
	}
}

// The result has the error of the failed write.
func TestClassify_FailedWritesOfH1(t *testing.T) {
	s := newSender(t, Options{Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			_, _ = io.ReadFull(far, make([]byte, 5000))
			_ = far.Close()
		}()
		return &resetConn{Conn: near}, nil
	}})
	req := newRequest("http://a.example")
	req.Body = []byte(strings.Repeat("x", h1.MaxBody))
	result := s.Deliver(t.Context(), req)
	require.Equal(t, policy.ClassReset, result.Class, result.Error)
}

// resetConn fails with TCP's error instead of a pipe's.
type resetConn struct{ net.Conn }

func (c *resetConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		return n, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.ECONNRESET)}
	}
	return n, nil
}
