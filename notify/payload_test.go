package notify

import (
	"bytes"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/notify/h1"
	"github.com/ringback/ringback/policy"
)

// A receiver that has read the request and hangs does not keep its body in memory.
func TestPayload_IsReleasedWhenSent(t *testing.T) {
	for _, c := range []struct {
		name  string
		size  int
		tls   bool
		http2 bool
	}{
		{name: "by package h1", size: h1.MaxBody},
		{name: "by net/http", size: 1 << 20},
		{name: "over TLS", size: 1 << 20, tls: true},
		{name: "over HTTP/2", size: 1 << 20, tls: true, http2: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			var got atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				n, _ := io.Copy(io.Discard, r.Body)
				got.Store(n)
				<-over
			}))
			var o Options
			if c.tls {
				server.EnableHTTP2 = c.http2
				server.StartTLS()
				o.Roots = x509.NewCertPool()
				o.Roots.AddCert(server.Certificate())
			} else {
				server.Start()
			}
			defer server.Close()
			s := newSender(t, o)
			var sent, gone atomic.Int64
			ended := make(chan policy.Result, 1)
			go func() {
				req := newRequest(server.URL)
				req.Timeout = time.Minute
				req.Body = bytes.Repeat([]byte("x"), c.size)
				req.Sent = func() { sent.Add(1) }
				runtime.AddCleanup(&req.Body[0], func(int) { gone.Add(1) }, 0)
				ended <- s.Deliver(t.Context(), req)
			}()
			require.Eventually(t, func() bool { return sent.Load() == 1 }, 5*time.Minute, time.Millisecond)
			require.Eventually(t, func() bool { runtime.GC(); return gone.Load() == 1 },
				5*time.Minute, time.Millisecond)
			arrived := func() bool { return got.Load() == int64(c.size) }
			require.Eventually(t, arrived, 5*time.Minute, time.Millisecond, "and all of it arrives")
			close(over)
			require.Equal(t, 200, (<-ended).Status)
			require.EqualValues(t, 1, sent.Load())
		})
	}
}

// A body that the receiver does not read is kept.
func TestPayload_IsKeptUntilSent(t *testing.T) {
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer server.Close()
	defer close(over)
	s := newSender(t, Options{})
	req := newRequest(server.URL)
	req.Body = make([]byte, 64<<20)
	req.Sent = func() { t.Error("it was not sent") }
	deliverUntil(t, s, req, policy.ClassTimeoutSend)
}

// Sent may change the caller's request.
func TestPayload_AttemptWaitsForSent(t *testing.T) {
	server, got := recordingServer(t, (*httptest.Server).Start)
	s := newSender(t, Options{})
	req := newRequest(server.URL)
	req.Body = make([]byte, 1<<20)
	returned := false
	req.Sent = func() {
		<-got
		time.Sleep(200 * time.Millisecond) // net/http waits for 50 ms until it has written
		returned = true
	}
	require.Equal(t, 200, s.Deliver(t.Context(), req).Status)
	require.True(t, returned)
}
