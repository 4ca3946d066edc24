package notify

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/guard"
)

// net/http logs unsolicited responses to the standard logger.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// newSender returns a Sender that may call loopback.
func newSender(t testing.TB, o Options) *Sender {
	t.Helper()
	if o.Guard == nil {
		o.Guard = guard.New(guard.Options{AllowPrivate: true})
	}
	s, err := New(o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// newRequest returns a complete request of an attempt.
func newRequest(url string) job.Request {
	return job.Request{
		Ref:         job.Ref{Namespace: "default", ID: "job-1"},
		Queue:       job.Queue{Namespace: "default", Topic: "order.close", Lane: "a"},
		URL:         url,
		Method:      http.MethodPost,
		ContentType: "application/json",
		Body:        []byte(`{"order":4711}`),
		Attempt:     3,
		RetriesLeft: 7,
		DueAt:       time.UnixMilli(1_700_000_000_123),
		Timeout:     2 * time.Minute, // never reached on a slow machine either
	}
}

// receiver accepts connections on loopback and hands each to serve, which must return when its connection is closed.
// At the end of the test it closes them all and waits.
func receiver(t testing.TB, serve func(net.Conn)) (hostPort string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		conns []net.Conn
	)
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			wg.Go(func() {
				defer func() { _ = conn.Close() }()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

// respondOnce reads one request per connection, writes a text and closes.
func respondOnce(text string) func(net.Conn) {
	return func(conn net.Conn) {
		if readRequest(bufio.NewReader(conn)) {
			_, _ = io.WriteString(conn, text)
		}
	}
}

// readRequest reads one request with its body.
func readRequest(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

// discardLog is the log of servers whose errors are expected.
var discardLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
