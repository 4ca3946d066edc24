package notify

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
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
	for name, auth := range map[string]tls.ClientAuthType{
		"not asked": tls.NoClientCert, "asked": tls.RequestClientCert,
	} {
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
			// Without a resend a third of them do. Net/http's server counts a stream until it has noticed that its own
			// answer is written: it ends one that comes earlier with PROTOCOL_ERROR, which does not say that the
			// request was not read.
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
