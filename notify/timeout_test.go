package notify

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/conn"
	"github.com/ringback/ringback/notify/h1"
	"github.com/ringback/ringback/policy"
)

// senderOverPipe returns a Sender whose dials take a time and connect to serve by a pipe, for use in synctest.
func senderOverPipe(t *testing.T, dial time.Duration, serve func(net.Conn)) *Sender {
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait) // after the Sender was closed
	return newSender(t, Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case <-time.After(dial):
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
		}
		ours, theirs := net.Pipe()
		serving.Go(func() {
			defer func() { _ = theirs.Close() }()
			serve(theirs)
		})
		return ours, nil
	}})
}

// holdOpen reads until the peer closes the connection.
func holdOpen(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// dripBytes writes a byte per second until a write fails.
func dripBytes(conn net.Conn, text string) {
	for i := 0; ; i++ {
		if _, err := conn.Write([]byte{text[i%len(text)]}); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// afterRequest calls serve after reading the request.
func afterRequest(serve func(net.Conn)) func(net.Conn) {
	return func(conn net.Conn) {
		if readRequest(bufio.NewReader(conn)) {
			serve(conn)
		}
	}
}

// stallingReceivers are receivers that stall in each phase.
var stallingReceivers = []struct {
	name   string
	scheme string
	dial   time.Duration
	serve  func(net.Conn)
	body   int
	class  policy.ErrorClass
	text   string
	status int
}{
	{
		name: "connecting", dial: time.Hour, serve: holdOpen,
		class: policy.ClassTimeoutDial, text: "resolving the name or connecting",
	},
	{
		name: "in the TLS handshake", scheme: "https", serve: holdOpen,
		class: policy.ClassTimeoutTLS, text: "shaking hands over TLS; if curl reaches it",
	},
	{
		name: "sending the header", serve: func(net.Conn) { time.Sleep(time.Hour) },
		class: policy.ClassTimeoutSend, text: "sending the request",
	},
	{
		name: "sending the body", body: 1 << 20, serve: func(conn net.Conn) {
			_, _ = io.ReadFull(conn, make([]byte, 8<<10))
			time.Sleep(time.Hour)
		},
		class: policy.ClassTimeoutSend, text: "sending the request",
	},
	{
		name: "sending a body by package h1", body: h1.MaxBody, serve: func(conn net.Conn) {
			_, _ = io.ReadFull(conn, make([]byte, 8<<10))
			time.Sleep(time.Hour)
		},
		class: policy.ClassTimeoutSend, text: "sending the request",
	},
	{
		name: "waiting for the header", serve: afterRequest(holdOpen),
		class: policy.ClassTimeoutHeaders, text: "waiting for the header",
	},
	{
		name: "in a header that drips", serve: afterRequest(func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			dripBytes(conn, "X: y\r\n")
		}),
		class: policy.ClassTimeoutHeaders, text: "waiting for the header",
	},
	{
		name:  "in interim answers",
		serve: afterRequest(func(conn net.Conn) { dripBytes(conn, "HTTP/1.1 103 Early Hints\r\n\r\n") }),
		class: policy.ClassTimeoutHeaders, text: "waiting for the header",
	},
	{
		name: "waiting for the body", serve: afterRequest(func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
			holdOpen(conn)
		}),
		class: policy.ClassTimeoutBody, text: "reading the body", status: 200,
	},
	{
		name: "in a body that drips", serve: afterRequest(func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 503 Busy\r\n\r\n")
			dripBytes(conn, "still here ")
		}),
		class: policy.ClassTimeoutBody, text: "reading the body", status: 503,
	},
	{
		name: "in chunks that drip", serve: afterRequest(func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			dripBytes(conn, "1\r\nx\r\n")
		}),
		class: policy.ClassTimeoutBody, text: "reading the body", status: 200,
	},
	{
		name: "in all of it together", dial: 4 * time.Second, serve: afterRequest(func(conn net.Conn) {
			time.Sleep(4 * time.Second)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
			time.Sleep(4 * time.Second)
			_, _ = io.WriteString(conn, "abcde")
		}),
		class: policy.ClassTimeoutBody, text: "reading the body", status: 200,
	},
}

func requestTo(scheme string, body int) job.Request {
	if scheme == "" {
		scheme = "http"
	}
	req := newRequest(scheme + "://shop.example/?topsecret")
	req.Timeout = 10 * time.Second
	if body > 0 {
		req.Body = []byte(strings.Repeat("x", body))
	}
	return req
}

func TestTimeout_OneLimitNamesThePhase(t *testing.T) {
	for _, test := range stallingReceivers {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := senderOverPipe(t, test.dial, test.serve)
				result := s.Deliver(t.Context(), requestTo(test.scheme, test.body))
				require.Equal(t, test.class, result.Class, result.Error)
				require.True(t, result.Class.Timeout())
				require.Equal(t, 10*time.Second, result.Duration)
				require.Equal(t, test.status, result.Status)
				require.Contains(t, result.Error, "the limit of 10s for the whole attempt ran out while "+test.text)
				require.NotContains(t, result.Error, "topsecret")
			})
		})
	}
}

func TestTimeout_ShutdownInAnyPhase(t *testing.T) {
	for _, test := range stallingReceivers {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := senderOverPipe(t, test.dial, test.serve)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				result := s.Deliver(ctx, requestTo(test.scheme, test.body))
				require.Equal(t, policy.ClassShutdown, result.Class, result.Error)
				require.Equal(t, time.Second, result.Duration)
			})
		})
	}
}

func TestTimeout_ResponseJustInTimeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := senderOverPipe(t, 0, afterRequest(func(conn net.Conn) {
			time.Sleep(10*time.Second - time.Nanosecond)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}))
		result := s.Deliver(t.Context(), requestTo("", 0))
		require.Equal(t, policy.ClassNone, result.Class, result.Error)
		require.Equal(t, "ok", string(result.Body))
		require.Equal(t, 10*time.Second-time.Nanosecond, result.Duration)
	})
}

// net/http does not end a dial with its request, so the dialer must. Package h1 does.
func TestTimeout_DialEndsAtItsAttemptsLimit(t *testing.T) {
	for scheme, most := range map[string]time.Duration{"http": time.Second, "https": 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ended := make(chan time.Duration, 1)
			s := newSender(t, Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				if scheme == "http" {
					<-ctx.Done()
					ended <- time.Since(began)
					return nil, ctx.Err()
				}
				ours, theirs := net.Pipe()
				go func() {
					holdOpen(theirs)
					ended <- time.Since(began)
				}()
				return ours, nil
			}})
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			result := s.Deliver(ctx, requestTo(scheme, 0))
			require.Equal(t, policy.ClassShutdown, result.Class)
			require.Equal(t, most, <-ended, scheme)
		})
	}
}

func TestRetryAfter_DateCountsFromTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := senderOverPipe(t, 0, afterRequest(func(conn net.Conn) {
			time.Sleep(3 * time.Second)
			at := time.Now().Add(time.Minute).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 503 Busy\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n", at)
		}))
		result := s.Deliver(t.Context(), requestTo("", 0))
		require.Equal(t, time.Minute, result.RetryAfter)
	})
}

func TestTimeout_HasADefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := senderOverPipe(t, 0, afterRequest(holdOpen))
		req := requestTo("", 0)
		req.Timeout = 0
		result := s.Deliver(t.Context(), req)
		require.Equal(t, policy.ClassTimeoutHeaders, result.Class)
		require.Equal(t, defaultTimeout, result.Duration)
	})
}

// The context's timer may be late, and dials and package h1 have deadlines.
func TestTimeout_LaterErrorsAreTimeouts(t *testing.T) {
	for _, err := range []error{net.ErrClosed, os.ErrDeadlineExceeded} {
		a := &attempt{Progress: conn.Progress{
			Context: t.Context(),
			Start:   time.Now().Add(-time.Second), Limit: time.Second,
		}}
		a.SetPhase(conn.PhaseHeaders)
		class, text := a.classify(err)
		require.Equal(t, policy.ClassTimeoutHeaders, class)
		require.Contains(t, text, "the limit of 1s")
	}
}
