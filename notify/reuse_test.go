package notify

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/notify/h1"
	"github.com/ringback/ringback/policy"
)

// A receiver closes an idle connection just before the next attempt.
func TestReuse_ClosedConnectionsCostNoAttempt(t *testing.T) {
	const attempts = 300
	closed := make(chan struct{}, 2*attempts)
	addr := receiver(t, func(conn net.Conn) {
		if readRequest(bufio.NewReader(conn)) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
		_ = conn.Close()
		closed <- struct{}{}
	})
	s := newSender(t, Options{})
	for n := range attempts {
		req := newRequest("http://" + addr)
		req.Body = bytes.Repeat([]byte("x"), 1+n/(attempts/2)*h1.MaxBody) // by package h1, then by net/http
		result := s.Deliver(t.Context(), req)
		require.Equal(t, http.StatusOK, result.Status, result.Error)
		<-closed
	}
}

// A receiver announces when it closes idle connections. Later requests on them are lost.
func TestReuse_ObeysTheAnnouncedTime(t *testing.T) {
	for _, body := range []int{1, h1.MaxBody + 1} { // also by net/http
		synctest.Test(t, func(t *testing.T) {
			conns, late := 0, 0
			s := senderOverPipe(t, 0, func(conn net.Conn) {
				conns++
				in := bufio.NewReader(conn)
				for start := time.Now(); readRequest(in); start = time.Now() {
					if time.Since(start) > time.Second {
						late++
						return
					}
					_, _ = io.WriteString(conn,
						"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok")
				}
			})
			defer s.Close()
			for _, wait := range []time.Duration{
				400 * time.Millisecond, 1500 * time.Millisecond, 900 * time.Millisecond,
			} {
				require.Equal(t, 200, s.Deliver(t.Context(), requestTo("http", body)).Status)
				time.Sleep(wait)
			}
			require.Equal(t, 200, s.Deliver(t.Context(), requestTo("http", body)).Status)
			require.Equal(t, 3, conns)
			require.Zero(t, late)
		})
	}
}

func TestHostile_SpeaksFirst(t *testing.T) {
	addr := receiver(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "220 mail.example ESMTP\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})
	s := newSender(t, Options{})
	for n := range 100 { // it may be read before an answer is expected, or afterwards
		req := newRequest("http://" + addr)
		req.Body = bytes.Repeat([]byte("x"), 1+n%2*h1.MaxBody) // by package h1, and by net/http
		result := s.Deliver(t.Context(), req)
		require.Contains(t, []policy.ErrorClass{policy.ClassHTTP, policy.ClassReset}, result.Class, result.Error)
		require.NotContains(t, result.Error, "readLoop")
	}
}
