package api

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/testkit"
)

func TestLinger_DeliversResultsToAClientThatSendsTooManyJobs(t *testing.T) {
	// Neither the results nor the surplus jobs fit into the buffers between client and server.
	conn := dial(t, handlerOf(fastService{newFake()}))
	require.NoError(t, conn.SetDeadline(time.Now().Add(testkit.MustCome)))
	s := begin(t, conn)
	require.NoError(t, s.send(strings.Repeat(`{"id": "`+strings.Repeat("x", 64)+"\"}\n", request.MaxBatchJobs)))
	large := strings.Repeat(`{"body_text": "`+strings.Repeat("x", 8<<10)+"\"}\n", 100)
	for range 10 {
		require.NoError(t, s.send(large))
	}
	require.NoError(t, s.send(""))
	s.answer()
	results := s.rest()
	require.Len(t, results, request.MaxBatchJobs+1)
	require.Equal(t, 413, results[request.MaxBatchJobs].Status)
}

// endedStream starts a stream, whose token is then revoked, and reads the reason of its end. The response has not ended
// then.
func endedStream(t *testing.T, service *revocableService, conn net.Conn) *streamClient {
	t.Helper()
	s := begin(t, conn, "Authorization: Bearer "+fakeToken)
	s.answer()
	service.revoked.Store(true)
	require.NoError(t, s.send("{}\n"))
	require.Equal(t, http.StatusUnauthorized, s.result().Status)
	return s
}

// newRevocable returns a service with fakeToken.
func newRevocable() *revocableService {
	return &revocableService{fake: withTokens(newFake(), map[string]*access.Principal{
		fakeToken: {Role: access.Publish, Namespace: "shop"},
	})}
}

func TestLinger_ReadsWhileTheClientSends(t *testing.T) {
	for name, c := range map[string]struct{ sends, took time.Duration }{
		"for a while": {10 * time.Second, 10*time.Second + lingerTimeout},
		"for ever":    {2 * maxLinger, maxLinger},
	} {
		t.Run(name, func(t *testing.T) {
			service := newRevocable()
			h := New(Options{Service: service, Logger: quiet})
			serveInSynctest(t, h, func(t *testing.T, _ *http.Server, conn net.Conn, returned <-chan struct{}) {
				s := endedStream(t, service, conn)
				began := time.Now()
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for time.Since(began) < c.sends {
						time.Sleep(lingerTimeout / 2) // a bubble's time
						if s.send("{}\n") != nil {
							return // who sends for ever does not see the answer's end, and is closed all the same
						}
					}
					_, err := io.Copy(io.Discard, s.body)
					assert.NoError(t, err)
				}()
				<-returned
				require.InDelta(t, c.took, time.Since(began), float64(lingerTimeout))
				<-sent
				require.LessOrEqual(t, time.Since(began), c.took+lingerTimeout+lastTimeout)
			})
		})
	}
}

func TestLinger_EndsAtShutdown(t *testing.T) {
	for name, ended := range map[string]bool{"a stream": false, "after a stream's end": true} {
		t.Run(name, func(t *testing.T) {
			service := newRevocable()
			h := New(Options{Service: service, Logger: quiet})
			serveInSynctest(t, h, func(t *testing.T, server *http.Server, conn net.Conn, returned <-chan struct{}) {
				var s *streamClient
				var send func() error
				if ended {
					s = endedStream(t, service, conn)
					send = func() error { return s.send("{}\n") }
				} else {
					// Unlike one in chunks, a request with a length can be read on after a deadline.
					send = func() error { _, err := io.WriteString(conn, "{}\n"); return err }
					_, err := io.WriteString(conn, "POST /v1/batch HTTP/1.1\r\nHost: localhost\r\n"+
						"Authorization: Bearer "+fakeToken+"\r\n"+
						"Content-Type: application/x-ndjson\r\nContent-Length: 1000000\r\n\r\n")
					require.NoError(t, err)
					s = &streamClient{t: t, conn: conn, in: bufio.NewReader(conn)}
					s.answer()
				}
				go func() { _, _ = io.Copy(io.Discard, s.body) }()
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for send() == nil {
						time.Sleep(lingerTimeout / 10) // a bubble's time
					}
				}()
				time.Sleep(lingerTimeout)
				began := time.Now()
				shut := make(chan error)
				go func() { shut <- server.Shutdown(context.Background()) }()
				<-returned
				require.LessOrEqual(t, time.Since(began), lingerTimeout)
				require.NoError(t, <-shut)
				<-sent
			})
		})
	}
}
