package conn

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/notify/guard"
)

// net/http logs unsolicited responses to the standard logger.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// newPool returns a Pool that may call loopback.
func newPool(t *testing.T, o Options) *Pool {
	t.Helper()
	o.Guard = guard.New(guard.Options{AllowPrivate: true})
	p := NewPool(o)
	t.Cleanup(p.Close)
	return p
}

// newProgress returns a Progress with a limit of 10 s.
func newProgress(t *testing.T) *Progress {
	t.Helper()
	p := &Progress{Context: t.Context(), Start: time.Now(), Limit: 2 * time.Minute}
	t.Cleanup(p.End)
	return p
}

// post sends a request, and reads the response.
func post(
	t *testing.T, roundTrip func(*http.Request) (*http.Response, error), url, body string,
) (*http.Response, error) {
	t.Helper()
	return postOf(t, newProgress(t), roundTrip, url, body)
}

// postOf is post with a Progress.
func postOf(
	t *testing.T, p *Progress, roundTrip func(*http.Request) (*http.Response, error), url, body string,
) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(p, http.MethodPost, url, nil)
	if err != nil {
		return nil, err
	}
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	resp, err := roundTrip(r)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp, errors.Join(err, resp.Body.Close())
}

// receiver accepts connections on loopback and hands each to serve, until the end of the test.
func receiver(t *testing.T, serve func(net.Conn)) (hostPort string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(t.Context(), func() { _ = conn.Close() })
			wg.Go(func() {
				defer stop()
				defer func() { _ = conn.Close() }()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l.Addr().String()
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

// reset ends a connection with a TCP reset.
func reset(conn net.Conn) {
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetLinger(0)
	}
	_ = conn.Close()
}

// roots returns the certificate authorities of a TLS server.
func roots(server *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return pool
}

// discardLog is the log of servers whose errors are expected.
var discardLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
