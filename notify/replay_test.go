package notify

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/conn"
	"github.com/ringback/ringback/notify/h1"
	"github.com/ringback/ringback/policy"
)

// everyKind has the requests that net/http treats differently when a connection fails.
var everyKind = map[string]func(*job.Request){
	"POST":                func(*job.Request) {},
	"POST without a body": func(r *job.Request) { r.Body = nil },
	"POST with a key": func(r *job.Request) {
		r.Body, r.Header = nil, map[string][]string{"Idempotency-Key": {"k"}, "X-Idempotency-Key": {"k"}}
	},
	"POST with a key and a body": func(r *job.Request) { r.Header = map[string][]string{"Idempotency-Key": {"k"}} },
	"GET":                        func(r *job.Request) { r.Method, r.Body = "GET", nil },
	"GET with a body":            func(r *job.Request) { r.Method = "GET" },
	"PUT":                        func(r *job.Request) { r.Method = "PUT" },
	"DELETE":                     func(r *job.Request) { r.Method, r.Body = "DELETE", nil },
	"DELETE with a key": func(r *job.Request) {
		r.Method, r.Body, r.Header = "DELETE", nil, map[string][]string{"Idempotency-Key": {"k"}}
	},
}

// A request without a body has a length, for receivers that require one.
func TestDeliver_SendsALengthWithoutABody(t *testing.T) {
	for method, length := range map[string][]string{
		"POST": {"0"}, "PUT": {"0"}, "PATCH": {"0"}, "GET": nil, "DELETE": nil,
	} {
		heads := make(chan textproto.MIMEHeader, 1)
		url := "http://" + receiver(t, func(conn net.Conn) {
			r := textproto.NewReader(bufio.NewReader(conn))
			line, err := r.ReadLine()
			head, headErr := r.ReadMIMEHeader()
			if err != nil || headErr != nil || !strings.HasPrefix(line, method+" ") {
				return
			}
			heads <- head
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			rest, _ := r.R.ReadString(0) // until the sender is closed
			heads <- textproto.MIMEHeader{"Rest": {rest}}
		})
		s := newSender(t, Options{})
		req := newRequest(url)
		req.Method, req.Body = method, nil
		require.Equal(t, 200, s.Deliver(t.Context(), req).Status, method)
		head := <-heads
		require.Equal(t, length, head["Content-Length"], method)
		require.NotContains(t, head, "Transfer-Encoding", method)
		s.Close()
		require.Equal(t, []string{""}, (<-heads)["Rest"], "%s: nothing comes after the head", method)
	}
}

// everyProtocol has how a receiver answers the first request of each connection with 200, and handles the second with
// then.
var everyProtocol = map[string]func(t *testing.T, requests *atomic.Int32, then func(net.Conn)) (url string, o Options){
	"HTTP/1.1": func(t *testing.T, requests *atomic.Int32, then func(net.Conn)) (string, Options) {
		return "http://" + receiver(t, answerFirst(requests, then)), Options{}
	},
	"HTTP/1.1 over TLS": func(t *testing.T, requests *atomic.Int32, then func(net.Conn)) (string, Options) {
		cert, root := certificate(t, "127.0.0.1", time.Now().Add(time.Hour))
		config := &tls.Config{Certificates: []tls.Certificate{cert}}
		serve := answerFirst(requests, then)
		return "https://" + receiver(t, func(raw net.Conn) { serve(tls.Server(raw, config)) }),
			Options{Roots: roots(root)}
	},
	"HTTP/2": func(t *testing.T, requests *atomic.Int32, then func(net.Conn)) (string, Options) {
		cert, root := certificate(t, "127.0.0.1", time.Now().Add(time.Hour))
		config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}
		return "https://" + answerStreams(t, config, func(conn net.Conn, stream uint32) bool {
			requests.Add(1)
			if stream == 1 {
				writeOK(conn, stream)
				return true
			}
			then(conn)
			return false
		}), Options{Roots: roots(root)}
	},
}

// answerFirst responds to the first request of each connection with 200, and handles the second with then.
func answerFirst(requests *atomic.Int32, then func(net.Conn)) func(net.Conn) {
	return func(conn net.Conn) {
		r := bufio.NewReader(conn)
		if !readRequest(r) {
			return
		}
		requests.Add(1)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		if readRequest(r) {
			requests.Add(1)
			then(conn)
		}
	}
}

// onStoppedClock runs a test of attempts over loopback that conn.RaceWindow does not fail, however slow the machine is:
// a bubble's clock stands still while one of its goroutines waits for a socket.
func onStoppedClock(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// A receiver closes an idle connection while a request is on its way.
func TestResend_OnceAfterAReusedConnectionIsLost(t *testing.T) {
	for protocol, start := range everyProtocol {
		for name, change := range everyKind {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				onStoppedClock(t, func(t *testing.T) {
					var requests atomic.Int32
					url, o := start(t, &requests, func(net.Conn) {})
					s := newSender(t, o)
					req := newRequest(url)
					req.Sent = func() {}
					change(&req)
					require.Equal(t, 200, s.Deliver(t.Context(), req).Status)
					result := s.Deliver(t.Context(), req)
					require.Equal(t, 200, result.Status, result.Error)
					require.Equal(t, int32(3), requests.Load())
				})
			})
		}
	}
}

func TestResend_NotWhereTheReceiverDidMoreThanClose(t *testing.T) {
	for name, then := range map[string]func(net.Conn){
		"a byte of an answer": func(conn net.Conn) { _, _ = io.WriteString(conn, "H") },
		"an interim answer":   func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 102 Processing\r\n\r\n") },
		"work on the request": func(net.Conn) { time.Sleep(conn.RaceWindow) },
	} {
		for _, body := range []int{0, 1, h1.MaxBody + 1} { // also by net/http
			t.Run(fmt.Sprintf("%s/%d", name, body), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var requests atomic.Int32
					s := senderOverPipe(t, 0, answerFirst(&requests, then))
					defer s.Close()
					require.Equal(t, 200, s.Deliver(t.Context(), requestTo("http", body)).Status)
					result := s.Deliver(t.Context(), requestTo("http", body))
					require.NotEqual(t, policy.ClassNone, result.Class)
					require.Equal(t, int32(2), requests.Load())
				})
			})
		}
	}
}

// A receiver that closes each connection on a request fails the attempt after one more.
func TestResend_OverOneNewConnection(t *testing.T) {
	onStoppedClock(t, func(t *testing.T) {
		var requests, conns atomic.Int32
		serve := answerFirst(new(atomic.Int32), func(net.Conn) { requests.Add(1) })
		s := newSender(t, Options{})
		req := newRequest("http://" + receiver(t, func(conn net.Conn) {
			if conns.Add(1) == 1 {
				serve(conn)
			} else if readRequest(bufio.NewReader(conn)) {
				requests.Add(1)
			}
		}))
		require.Equal(t, 200, s.Deliver(t.Context(), req).Status)
		result := s.Deliver(t.Context(), req)
		require.Equal(t, policy.ClassReset, result.Class, result.Error)
		require.Equal(t, int32(2), requests.Load())
		require.Equal(t, policy.ClassReset, s.Deliver(t.Context(), req).Class)
		require.Equal(t, int32(3), requests.Load(), "a new connection's end is the receiver's failure")
	})
}

// Plain net/http replays the request: the receiver above can detect it.
func TestResend_TestReceiverDetectsReplays(t *testing.T) {
	var requests atomic.Int32
	client := &http.Client{Transport: &http.Transport{}}
	url := "http://" + receiver(t, answerFirst(&requests, func(net.Conn) {}))
	for range 2 {
		resp, err := client.Get(url)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
	}
	client.CloseIdleConnections()
	require.Equal(t, int32(3), requests.Load())
}

// breakableConn fails after it is broken: the next Write accepts the rest of its allowance.
type breakableConn struct {
	net.Conn
	broken  atomic.Bool
	reset   atomic.Bool // a write has failed: so do reads
	through int
}

func (c *breakableConn) Write(p []byte) (int, error) {
	if !c.broken.Load() {
		return c.Conn.Write(p)
	}
	n, _ := c.Conn.Write(p[:min(c.through, len(p))])
	c.reset.Store(true)
	return n, syscall.ECONNRESET
}

func (c *breakableConn) Read(p []byte) (int, error) {
	if c.reset.Load() {
		return 0, syscall.ECONNRESET
	}
	return c.Conn.Read(p)
}

// connBreaker dials breakable connections. breakOpen breaks the open ones, breakNew the later ones.
type connBreaker struct {
	through  int
	dials    atomic.Int32
	conns    chan *breakableConn
	breakNew atomic.Bool
}

func newBreaker(through int) *connBreaker {
	return &connBreaker{through: through, conns: make(chan *breakableConn, 64)}
}

func (b *connBreaker) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	b.dials.Add(1)
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &breakableConn{Conn: conn, through: b.through}
	c.broken.Store(b.breakNew.Load())
	b.conns <- c
	return c, nil
}

func (b *connBreaker) breakOpen() {
	for {
		select {
		case c := <-b.conns:
			c.broken.Store(true)
		default:
			return
		}
	}
}

func TestResend_AtOnceWhenNoRequestArrived(t *testing.T) {
	for scheme, start := range map[string]func(*httptest.Server){
		"http": (*httptest.Server).Start, "https": (*httptest.Server).StartTLS,
	} {
		server, got := recordingServer(t, start)
		for name, change := range everyKind {
			for _, through := range []int{0, 1} { // bytes that are written
				t.Run(fmt.Sprintf("%s %s %d", scheme, name, through), func(t *testing.T) {
					onStoppedClock(t, func(t *testing.T) {
						b := newBreaker(through)
						o := Options{Dial: b.dial}
						if scheme == "https" {
							o.Roots = roots(server.Certificate())
						}
						s := newSender(t, o)
						req := newRequest(server.URL)
						change(&req)
						require.Equal(t, 200, s.Deliver(t.Context(), req).Status)
						require.Equal(t, string(req.Body), string((<-got).body))
						b.breakOpen()
						result := s.Deliver(t.Context(), req)
						require.Equal(t, 200, result.Status, result.Error)
						require.Equal(t, int32(2), b.dials.Load())
						second := <-got
						require.Equal(t, string(req.Body), string(second.body))
						require.Equal(t, "3", second.Header.Get("Ringback-Attempt"))
						require.Empty(t, second.TransferEncoding)
						require.Empty(t, got, "the receiver saw it once")
					})
				})
			}
		}
	}
}

// In a pool full of dead connections, two are tried before a new one is opened. Connections of other receivers stay.
func TestResend_DeadConnectionsCostNoAttempt(t *testing.T) {
	const open = 6
	var waiting atomic.Int32
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if waiting.Add(1) == open {
			close(release)
		}
		<-release
	}))
	t.Cleanup(server.Close)
	var neighbours atomic.Int32
	neighbour, _ := recordingServer(t, func(s *httptest.Server) {
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				neighbours.Add(1)
			}
		}
		s.Start()
	})
	b := newBreaker(0)
	s := newSender(t, Options{Dial: b.dial})
	for _, result := range concurrentAttempts(t, s, server.URL, open) {
		require.Equal(t, 200, result.Status, result.Error)
	}
	b.breakOpen()
	require.Equal(t, 200, s.Deliver(t.Context(), newRequest(neighbour.URL)).Status)

	for attempts := range int32(open / 2) {
		result := s.Deliver(t.Context(), newRequest(server.URL))
		require.Equal(t, 200, result.Status, result.Error)
		require.Equal(t, open+1+attempts+1, b.dials.Load())
	}
	require.Equal(t, int32(open+open/2), waiting.Load(), "the receiver saw each once")
	require.Equal(t, 200, s.Deliver(t.Context(), newRequest(neighbour.URL)).Status)
	require.Equal(t, int32(1), neighbours.Load(), "the neighbour's connection was kept")
}

// When the new connection is dead as well, the receiver failed: the attempt is retried.
func TestResend_LostReceiverIsNotAnInvalidRequest(t *testing.T) {
	for _, through := range []int{0, 1} {
		onStoppedClock(t, func(t *testing.T) {
			server, _ := recordingServer(t, (*httptest.Server).Start)
			b := newBreaker(through)
			s := newSender(t, Options{Dial: b.dial})
			require.Equal(t, 200, s.Deliver(t.Context(), newRequest(server.URL)).Status)
			b.breakOpen()
			b.breakNew.Store(true)
			result := s.Deliver(t.Context(), newRequest(server.URL))
			require.Equal(t, policy.ClassReset, result.Class, result.Error)
			require.NotContains(t, result.Error, "giving up")
			require.Equal(t, int32(2), b.dials.Load())
		})
	}
}

func TestResend_ReturnsARedirect(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	t.Cleanup(server.Close)
	b := newBreaker(0)
	s := newSender(t, Options{Dial: b.dial})
	require.Equal(t, 302, s.Deliver(t.Context(), newRequest(server.URL)).Status)
	b.breakOpen()
	require.Equal(t, 302, s.Deliver(t.Context(), newRequest(server.URL)).Status)
	require.Equal(t, int32(2), calls.Load())
}

func TestResend_ReportsTheLastError(t *testing.T) {
	server, _ := recordingServer(t, (*httptest.Server).Start)
	b := newBreaker(0)
	s := newSender(t, Options{Dial: b.dial})
	req := newRequest(server.URL + "/?topsecret")
	require.Equal(t, 200, s.Deliver(t.Context(), req).Status)
	b.breakOpen()
	server.Close()
	result := s.Deliver(t.Context(), req)
	require.Contains(t, []policy.ErrorClass{policy.ClassRefused, policy.ClassReset}, result.Class)
	require.NotContains(t, result.Error, "topsecret")
}

// answerStreams is a minimal HTTP/2 server. It calls answer for the header of each request, with the number of its
// stream. It closes the connection when answer returns false.
func answerStreams(t *testing.T, config *tls.Config, answer func(conn net.Conn, stream uint32) bool) (hostPort string) {
	return receiver(t, func(raw net.Conn) {
		conn := tls.Server(raw, config)
		preface := make([]byte, 24)
		if _, err := io.ReadFull(conn, preface); err != nil {
			return
		}
		writeFrame(conn, 4, 0, 0)
		head := make([]byte, 9)
		for {
			if _, err := io.ReadFull(conn, head); err != nil {
				return
			}
			length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
			if _, err := io.CopyN(io.Discard, conn, length); err != nil {
				return
			}
			switch {
			case head[3] == 4 && head[4] == 0: // SETTINGS
				writeFrame(conn, 4, 1, 0)
			case head[3] == 1: // HEADERS
				if !answer(conn, binary.BigEndian.Uint32(head[5:])) {
					return
				}
			}
		}
	})
}

// writeFrame writes an HTTP/2 frame with numbers of 32 bits.
func writeFrame(conn net.Conn, kind, flags byte, stream uint32, numbers ...uint32) {
	frame := binary.BigEndian.AppendUint32([]byte{0, 0, byte(4 * len(numbers)), kind, flags}, stream)
	for _, number := range numbers {
		frame = binary.BigEndian.AppendUint32(frame, number)
	}
	_, _ = conn.Write(frame)
}

// writeOK answers a request over HTTP/2 with 200.
func writeOK(conn net.Conn, stream uint32) {
	_, _ = conn.Write(append(binary.BigEndian.AppendUint32([]byte{0, 0, 1, 1, 5}, stream), 0x88))
}

func TestResend_NotAfterAnErrorOverHTTP2(t *testing.T) {
	cert, root := certificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}
	for failure, fail := range map[string]func(conn net.Conn, stream uint32) bool{
		"RST_STREAM with PROTOCOL_ERROR": func(conn net.Conn, stream uint32) bool {
			writeFrame(conn, 3, 0, stream, 1) // does not tell that it was not read
			return true
		},
		"GOAWAY that includes it": func(conn net.Conn, stream uint32) bool {
			writeFrame(conn, 7, 0, 0, stream, 0)
			return false
		},
	} {
		for name, change := range everyKind {
			var requests atomic.Int32
			s := newSender(t, Options{Roots: roots(root)})
			req := newRequest("https://" + answerStreams(t, config, func(conn net.Conn, stream uint32) bool {
				if requests.Add(1) == 1 {
					writeOK(conn, stream)
					return true
				}
				return fail(conn, stream)
			}))
			change(&req)
			require.Equal(t, 200, s.Deliver(t.Context(), req).Status, "%s, %s", failure, name)
			result := s.Deliver(t.Context(), req)
			require.Equal(t, policy.ClassReset, result.Class, "%s, %s: %s", failure, name, result.Error)
			require.Equal(t, int32(2), requests.Load(), "%s, %s", failure, name)
			require.NotContains(t, result.Error, "GetBody")
		}
	}
}

// A request that the receiver gave back was not processed.
func TestResend_AfterAReceiverGaveTheRequestBack(t *testing.T) {
	cert, root := certificate(t, "127.0.0.1", time.Now().Add(time.Hour))
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}
	goAway := func(code uint32) func(net.Conn, uint32) {
		return func(conn net.Conn, stream uint32) { writeFrame(conn, 7, 0, 0, stream-1, code) }
	}
	// After a GOAWAY each resend needs another connection. The first one may open two: net/http hands over the
	// connection that was given up if the goroutine that opened it has only now put it into the pool.
	for _, refusal := range []struct {
		name        string
		least, most int32 // resends
		refuse      func(conn net.Conn, stream uint32)
	}{
		{"REFUSED_STREAM", maxRefusals, maxRefusals, func(conn net.Conn, stream uint32) {
			writeFrame(conn, 3, 0, stream, 7)
		}},
		{"GOAWAY", conn.MaxDials - 2, conn.MaxDials - 1, goAway(0)},
		{"GOAWAY with ENHANCE_YOUR_CALM", conn.MaxDials - 2, conn.MaxDials - 1, goAway(11)},
	} {
		for name, change := range everyKind {
			for _, refuse := range []int32{1, refusal.least, 100} {
				t.Run(fmt.Sprintf("%s/%s/%d", refusal.name, name, refuse), func(t *testing.T) {
					t.Parallel() // it waits between its tries
					var requests atomic.Int32
					s := newSender(t, Options{Roots: roots(root)})
					req := newRequest("https://" + answerStreams(t, config, func(conn net.Conn, stream uint32) bool {
						if requests.Add(1) > refuse {
							writeOK(conn, stream)
						} else {
							refusal.refuse(conn, stream)
						}
						return true
					}))
					change(&req)
					result := s.Deliver(t.Context(), req)
					require.GreaterOrEqual(t, requests.Load(), min(refuse, refusal.least)+1, result.Error)
					require.LessOrEqual(t, requests.Load(), min(refuse, refusal.most)+1, result.Error)
					if refuse > refusal.most {
						require.Equal(t, policy.ClassReset, result.Class, result.Error)
						require.NotContains(t, result.Error, "GetBody")
						return
					}
					require.Equal(t, 200, result.Status, result.Error)
				})
			}
		}
	}
}
