package notify

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/notify/conn"
	"github.com/ringback/ringback/policy"
)

// fewStreamsReceiver is an HTTP/2 receiver with a low limit of concurrent streams.
func fewStreamsReceiver(t *testing.T, requests int, auth tls.ClientAuthType) (url string, root *x509.Certificate) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		time.Sleep(30 * time.Millisecond) // so that requests meet
	}))
	server.Config.ErrorLog = discardLog
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: requests}
	cert, root := certificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	server.TLS, server.EnableHTTP2 = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: auth}, true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, root
}

// concurrentAttempts makes attempts at once and returns their results.
func concurrentAttempts(t *testing.T, s *Sender, url string, attempts int) []policy.Result {
	t.Helper()
	done := make(chan policy.Result, attempts)
	start := make(chan struct{})
	for range attempts {
		go func() {
			<-start
			req := newRequest(url)
			req.Timeout = 2 * time.Minute
			done <- s.Deliver(t.Context(), req)
		}()
	}
	close(start)
	results := make([]policy.Result, 0, attempts)
	for range attempts {
		results = append(results, <-done)
	}
	return results
}

func TestHTTP2_AttemptsBeyondTheStreamLimitSucceed(t *testing.T) {
	for name, auth := range map[string]tls.ClientAuthType{"not asked": tls.NoClientCert, "asked": tls.RequestClientCert} {
		t.Run(name, func(t *testing.T) {
			url, root := fewStreamsReceiver(t, 20, auth)
			s := newSender(t, Options{Roots: roots(root)})
			const attempts = 120 // more are refused more often than is tried, on a machine that has other work
			succeeded := 0
			for _, result := range concurrentAttempts(t, s, url, attempts) {
				if result.Status == 200 {
					succeeded++
				} else {
					require.Equal(t, policy.ClassReset, result.Class, result.Error)
				}
			}
			// Without a resend a third of them do. Net/http's server counts a stream until it has noticed that its own answer is written:
			// it ends one that comes earlier with PROTOCOL_ERROR, which does not say that the request was not read.
			require.GreaterOrEqual(t, succeeded, attempts/2)
		})
	}
}

// Its SETTINGS allow no stream, and it keeps its connections open.
func TestHTTP2_ReceiverWithoutStreamsIsNotDialledInALoop(t *testing.T) {
	cert, root := certificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}
	var conns atomic.Int32
	addr := receiver(t, func(raw net.Conn) {
		conns.Add(1)
		conn := tls.Server(raw, config)
		_, _ = conn.Write([]byte{0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0}) // MAX_CONCURRENT_STREAMS 0
		holdOpen(conn)
	})
	s := newSender(t, Options{Roots: roots(root)})
	for range 2 {
		req := newRequest("https://" + addr)
		req.Timeout = time.Second
		result := s.Deliver(t.Context(), req)
		require.NotEqual(t, policy.ClassNone, result.Class)
		require.LessOrEqual(t, conns.Swap(0), int32(conn.MaxDials), result.Error)
	}
}

// bufferedConn is an end of a pipe whose writes do not wait for the peer, as over TCP.
type bufferedConn struct {
	net.Conn
	written chan []byte
}

// newBufferedConn returns a bufferedConn, to be closed by close.
func newBufferedConn(conn net.Conn) (c *bufferedConn, closeBuffer func()) {
	c = &bufferedConn{Conn: conn, written: make(chan []byte, 1000)}
	go func() {
		for p := range c.written {
			_, _ = conn.Write(p)
		}
	}()
	return c, func() { close(c.written) }
}

func (c *bufferedConn) Write(p []byte) (int, error) {
	c.written <- bytes.Clone(p)
	return len(p), nil
}

// http2OverPipe returns a Sender for https://shop.example whose connections, numbered from 1, are given to serve, and their
// number; for use in synctest.
func http2OverPipe(t *testing.T, serve func(n int, conn *tls.Conn)) (s *Sender, conns *int) {
	cert, root := certificate(t, "shop.example", time.Now().Add(time.Hour))
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}
	conns = new(int)
	s = senderOverPipe(t, 10*time.Millisecond, func(raw net.Conn) {
		*conns++
		buffered, closeBuffer := newBufferedConn(raw)
		defer closeBuffer()
		serve(*conns, tls.Server(buffered, config))
	})
	s.SetRoots(roots(root))
	return s, conns
}

// The first requests to a receiver share one connection. Those that are lost with it share another one.
func TestHTTP2_RequestsShareOneNewConnection(t *testing.T) {
	const attempts = 20
	for name, test := range map[string]struct {
		conns int
		lose  func(conn net.Conn, last uint32) (open bool) // attempts streams
	}{
		"GOAWAY": {2, func(conn net.Conn, last uint32) bool {
			writeFrame(conn, 7, 0, 0, last-2*attempts, 0)
			return true
		}},
		"the end of the connection": {2, func(net.Conn, uint32) bool { return false }},
		"REFUSED_STREAM": {1, func(conn net.Conn, last uint32) bool {
			for n := range uint32(attempts) {
				writeFrame(conn, 3, 0, last-2*n, 7)
			}
			return true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				s, conns := http2OverPipe(t, func(_ int, conn *tls.Conn) {
					serveStreams(conn, func(conn net.Conn, stream uint32) bool {
						requests++
						if requests == 2*attempts {
							return test.lose(conn, stream)
						}
						if requests <= attempts || requests > 2*attempts {
							writeOK(conn, stream)
						}
						return true
					})
				})
				for range 2 {
					for _, result := range concurrentAttempts(t, s, "https://shop.example", attempts) {
						require.Equal(t, 200, result.Status, result.Error)
					}
				}
				require.Equal(t, 3*attempts, requests)
				require.Equal(t, test.conns, *conns)
			})
		})
	}
}

// A connection that hangs in its handshake delays the requests that wait for it, and fails none.
func TestHTTP2_RequestsDoNotShareAHangingDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := http2OverPipe(t, func(n int, conn *tls.Conn) {
			if n == 1 {
				holdOpen(conn.NetConn())
				return
			}
			serveStreams(conn, func(conn net.Conn, stream uint32) bool {
				writeOK(conn, stream)
				return true
			})
		})
		for _, result := range concurrentAttempts(t, s, "https://shop.example", 5) {
			require.Equal(t, 200, result.Status, result.Error)
			require.Less(t, result.Duration, 2*time.Second)
		}
	})
}
