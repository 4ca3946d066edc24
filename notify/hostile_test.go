package notify

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// deliver makes an attempt with a limit and requires that it ends by then, give or take what a slow machine needs.
func deliver(t *testing.T, s *Sender, url string, limit time.Duration) policy.Result {
	t.Helper()
	req := newRequest(url)
	req.Timeout = limit
	began := time.Now()
	result := s.Deliver(t.Context(), req)
	require.Less(t, time.Since(began), limit+time.Minute)
	return result
}

// deliverUntil makes attempts until one ends in a class, each with a limit four times that of the one before: on a slow
// machine a short limit runs out before the phase in which the receiver hangs.
func deliverUntil(t *testing.T, s *Sender, req job.Request, class policy.ErrorClass) policy.Result {
	t.Helper()
	for limit := 100 * time.Millisecond; ; limit *= 4 {
		req.Timeout = limit
		result := s.Deliver(t.Context(), req)
		if result.Class == class || !result.Class.Timeout() || limit > 30*time.Second {
			require.Equal(t, class, result.Class, result.Error)
			return result
		}
	}
}

func TestHostile_NeverAccepts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	result := deliver(t, newSender(t, Options{}), "http://"+l.Addr().String(), 100*time.Millisecond)
	require.True(t, result.Class.Timeout(), "%s: %s", result.Class, result.Error)
	deliverUntil(t, newSender(t, Options{}), newRequest("https://"+l.Addr().String()), policy.ClassTimeoutTLS)
}

func TestHostile_NeverAnswers(t *testing.T) {
	addr := receiver(t, afterRequest(holdOpen))
	deliverUntil(t, newSender(t, Options{}), newRequest("http://"+addr), policy.ClassTimeoutHeaders)
}

func TestHostile_NeverReads(t *testing.T) {
	gone := make(chan struct{})
	t.Cleanup(func() { close(gone) })
	addr := receiver(t, func(net.Conn) { <-gone })
	req := newRequest("http://" + addr)
	req.Body = make([]byte, 64<<20)
	deliverUntil(t, newSender(t, Options{}), req, policy.ClassTimeoutSend)
	gone <- struct{}{}
}

// repeatUntilError repeats a text until a write fails, and counts its bytes.
func repeatUntilError(conn net.Conn, text string, written *atomic.Int64) {
	block := []byte(strings.Repeat(text, 1+(32<<10)/len(text)))
	for {
		n, err := conn.Write(block)
		written.Add(int64(n))
		if err != nil {
			return
		}
	}
}

func TestHostile_LongBodyIsTruncatedAndEndsTheConnection(t *testing.T) {
	for name, head := range map[string]string{
		"of a gigabyte": "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n",
		"without end":   "HTTP/1.1 500 Oops\r\n\r\n",
	} {
		var written atomic.Int64
		ended := make(chan struct{}, 1)
		addr := receiver(t, afterRequest(func(conn net.Conn) {
			_, _ = io.WriteString(conn, head)
			repeatUntilError(conn, "0123456789", &written)
			ended <- struct{}{}
		}))
		result := deliver(t, newSender(t, Options{}), "http://"+addr, 2*time.Minute)
		require.Equal(t, policy.ClassNone, result.Class, "%s: %s", name, result.Error)
		require.NotZero(t, result.Status)
		require.Len(t, result.Body, job.MaxAttemptBody)
		<-ended
		require.Less(t, written.Load(), int64(32<<20), "only what the system's buffers hold")
	}
}

func TestHostile_BodyWithinTheLimitKeepsTheConnection(t *testing.T) {
	for size, conns := range map[int]int32{MaxRead - 1: 1, MaxRead + 1: 2} {
		var opened atomic.Int32
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", size))
		}))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
		server.Start()
		s := newSender(t, Options{})
		for range 2 {
			require.Equal(t, 200, s.Deliver(t.Context(), newRequest(server.URL)).Status)
		}
		s.Close()
		server.Close()
		require.Equal(t, conns, opened.Load(), size)
	}
}

func TestHostile_EndlessInterimResponses(t *testing.T) {
	var written atomic.Int64
	addr := receiver(t, afterRequest(func(conn net.Conn) {
		repeatUntilError(conn, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", &written)
	}))
	result := deliver(t, newSender(t, Options{}), "http://"+addr, 2*time.Minute)
	require.Equal(t, policy.ClassTooLarge, result.Class, result.Error)
}

func TestHostile_InterimResponsesAreSkipped(t *testing.T) {
	addr := receiver(t,
		respondOnce("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"))
	require.Equal(t, 204, deliver(t, newSender(t, Options{}), "http://"+addr, 2*time.Minute).Status)
}

func TestHostile_SwitchingProtocolsHasNoBody(t *testing.T) {
	addr := receiver(t, afterRequest(func(conn net.Conn) {
		_, _ = io.WriteString(conn,
			"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		holdOpen(conn)
	}))
	result := deliver(t, newSender(t, Options{}), "http://"+addr, 2*time.Minute)
	require.Equal(t, 101, result.Status, result.Error)
	require.Equal(t, policy.ClassNone, result.Class, "the limit is not waited for")
}

// Bytes after the announced length of a body are not read as the next response.
func TestHostile_MoreThanContentLength(t *testing.T) {
	var requests atomic.Int32
	addr := receiver(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		for readRequest(r) {
			requests.Add(1)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more than that")
		}
	})
	s := newSender(t, Options{})
	result := deliver(t, s, "http://"+addr, 2*time.Minute)
	require.Equal(t, 200, result.Status)
	require.Equal(t, "ok", string(result.Body))
	result = deliver(t, s, "http://"+addr, 2*time.Minute)
	if result.Class == policy.ClassNone {
		require.Equal(t, "ok", string(result.Body))
	}
	require.LessOrEqual(t, requests.Load(), int32(2))
}

func TestHostile_ResponseBeforeTheRequestWasRead(t *testing.T) {
	addr := receiver(t, func(conn net.Conn) {
		_, _ = bufio.NewReader(conn).ReadString('\n')
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
		holdOpen(conn)
	})
	req := newRequest("http://" + addr)
	req.Body = []byte(strings.Repeat("x", 1<<20))
	require.Equal(t, 413, newSender(t, Options{}).Deliver(t.Context(), req).Status)
}

func TestHostile_ResponsesOfOldServers(t *testing.T) {
	addr := receiver(t, respondOnce("HTTP/1.0 200 OK\r\n\r\nuntil the end"))
	result := deliver(t, newSender(t, Options{}), "http://"+addr, 2*time.Minute)
	require.Equal(t, 200, result.Status)
	require.Equal(t, "until the end", string(result.Body))
}
