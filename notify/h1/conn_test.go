package h1

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tcpPair returns both ends of a TCP connection, closed at the end of the test.
func tcpPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	near, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	far, err = l.Accept()
	require.NoError(t, err)
	for _, c := range []net.Conn{near, far} {
		require.NoError(t, c.SetDeadline(time.Now().Add(2*time.Minute)))
		t.Cleanup(func() { _ = c.Close() })
	}
	return near, far
}

// exchange is the result of a request.
type exchange struct {
	status int
	body   string
	err    error // of the response or of its body
	wrote  []error
	done   []bool
}

// send sends a request, and reads the response to its end.
func send(t *testing.T, c *Conn, method, text string) (e exchange) {
	t.Helper()
	resp, err := c.RoundTrip(request(t, method, "http://a.example/x", text), Hooks{
		Wrote: func(err error) { e.wrote = append(e.wrote, err) },
		Done:  func(_ *http.Response, reusable bool) { e.done = append(e.done, reusable) },
	})
	if err != nil {
		e.err = err
		return e
	}
	read, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	e.status, e.body, e.err = resp.StatusCode, string(read), err
	return e
}

// serve responds to each request of a connection with a text, and closes it after the last.
func serve(t *testing.T, far net.Conn, texts ...string) {
	t.Helper()
	over := make(chan struct{})
	t.Cleanup(func() {
		_ = far.Close()
		<-over
	})
	go func() {
		defer close(over)
		defer func() { _ = far.Close() }()
		in := bufio.NewReader(far)
		for _, text := range texts {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(far, text)
		}
	}()
}

func TestRoundTrip_HandlesHostileServers(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		status int // zero: the request fails
		body   string
		err    error // nil with a status of zero: one of net/http's
		broken bool  // the body ends with an error
	}{
		"nothing":                {err: io.EOF},
		"half a status line":     {answer: "HTTP/1.1 2"},
		"half a header":          {answer: "HTTP/1.1 200 OK\r\nX: ", err: io.ErrUnexpectedEOF},
		"another protocol":       {answer: "SSH-2.0-OpenSSH_9.9\r\n"},
		"an alert of TLS":        {answer: "\x15\x03\x01\x00\x02\x02\x16"},
		"no status":              {answer: "HTTP/1.1 abc\r\n\r\n"},
		"a line without a colon": {answer: "HTTP/1.1 200 OK\r\nx\r\n\r\n"},
		"two lengths":            {answer: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok"},
		"a negative length":      {answer: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"},
		"an unknown coding":      {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"},
		"too long a line": {answer: "HTTP/1.1 200 OK\r\nX: " +
			strings.Repeat("x", MaxHeader), err: ErrHeaderTooLarge},
		"too many lines": {answer: "HTTP/1.1 200 OK\r\n" + strings.Repeat("a:\r\n", MaxHeaderLines+
			1), err: ErrHeaderTooLarge},
		"too many interim answers": {answer: strings.Repeat("HTTP/1.1 103 \r\nA: b\r\n\r\n", MaxHeaderLines+
			1), err: ErrHeaderTooLarge},
		"as many lines as may be": {answer: "HTTP/1.1 204 No Content\r\n" + strings.Repeat("a:\r\n", MaxHeaderLines) +
			"\r\n", status: 204},
		"a few interim answers": {answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 \r\n\r\nHTTP/1.1 204 No " +
			"Content\r\n\r\n", status: 204},
		"a body that is cut": {answer: "HTTP/1.1 200 OK\r\nContent-Length: " +
			"4\r\n\r\nok", status: 200, body: "ok", broken: true},
		"a chunk that is cut": {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n4\r\nok", status: 200, body: "ok", broken: true},
		"a chunk without a " +
			"size": {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", status: 200, broken: true},
		"a body until the end": {answer: "HTTP/1.0 200 OK\r\n\r\nok", status: 200, body: "ok"},
		"a body after switching": {answer: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " +
			"x\r\n\r\n", status: 101},
		"a status that is not " +
			"HTTP": {answer: "HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nok", status: 99, body: "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := tcpPair(t)
			serve(t, far, test.answer)
			got := send(t, NewConn(near), http.MethodPost, "body")
			require.Equal(t, test.status, got.status, got.err)
			require.Equal(t, []error{nil}, got.wrote)
			if test.status == 0 {
				require.Error(t, got.err)
				if test.err != nil {
					require.ErrorIs(t, got.err, test.err)
				}
				require.Empty(t, got.done)
				return
			}
			require.Equal(t, test.body, got.body)
			require.Equal(t, test.broken, got.err != nil, got.err)
			require.Len(t, got.done, 1)
			if test.broken || test.status < 200 || test.answer[:8] == "HTTP/1.0" {
				require.False(t, got.done[0])
			}
		})
	}
}

func TestRoundTrip_ReportsReusableConnections(t *testing.T) {
	for answer, reusable := range map[string]bool{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok":                      true,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":      true,
		"HTTP/1.1 204 No Content\r\n\r\n":                                     true,
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok": false,
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok!":                     false,
		"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 Forged\r\n\r\n":          false,
	} {
		near, far := tcpPair(t)
		serve(t, far, answer, answer)
		c := NewConn(near)
		require.Equal(t, []bool{reusable}, send(t, c, http.MethodPost, "x").done, answer)
		if reusable {
			require.Equal(t, []bool{true}, send(t, c, http.MethodPost, "x").done, answer)
		}
	}
}

func TestRoundTrip_ClosingABodyEarlyEndsTheConnection(t *testing.T) {
	near, far := tcpPair(t)
	serve(t, far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	var done []bool
	resp, err := NewConn(near).RoundTrip(request(t, http.MethodPost, "http://a.example", ""), Hooks{
		Done: func(_ *http.Response, reusable bool) { done = append(done, reusable) },
	})
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.NoError(t, resp.Body.Close())
	require.Equal(t, []bool{false}, done)
}

func TestRoundTrip_FailsWhenTheServerSpeaksFirst(t *testing.T) {
	near, far := tcpPair(t)
	_, err := io.WriteString(far, "220 mail.example ESMTP\r\n")
	require.NoError(t, err)
	c := NewConn(near)
	require.Eventually(t, c.HasUnread, 5*time.Minute, time.Millisecond)
	require.ErrorIs(t, send(t, c, http.MethodPost, "x").err, ErrSpokeFirst)
	require.Zero(t, c.Written())
}

// A write to a pipe blocks until it is read.
func TestRoundTrip_ReturnsAResponseToATruncatedRequest(t *testing.T) {
	for name, answer := range map[string]string{"answered": "HTTP/1.1 401 No\r\nContent-Length: " +
		"2\r\n\r\nno", "silent": ""} {
		near, far := net.Pipe()
		go func() {
			_, _ = io.ReadFull(far, make([]byte, 5000))
			_ = far.SetReadDeadline(time.Unix(1, 0))
			_, _ = io.WriteString(far, answer)
			_ = far.Close()
		}()
		c := NewConn(&cutConn{Conn: near})
		got := send(t, c, http.MethodPost, strings.Repeat("x", MaxBody))
		require.True(t, c.WriteFailed(), name)
		require.NotZero(t, c.Written(), name)
		require.Len(t, got.wrote, 1, name)
		require.ErrorIs(t, got.wrote[0], errCut, name)
		if answer == "" {
			require.ErrorIs(t, got.err, errCut, "what the write failed with")
			continue
		}
		require.Equal(t, 401, got.status, name)
		require.Equal(t, "no", got.body)
		require.Equal(t, []bool{false}, got.done, name)
	}
}

var errCut = errors.New("cut off")

// cutConn accepts 5000 bytes.
type cutConn struct {
	net.Conn
	written int
}

func (c *cutConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p[:min(len(p), 5000-c.written)])
	c.written += n
	if err == nil && n < len(p) {
		err = errCut
	}
	return n, err
}

func TestRoundTrip_CallsNoHookWhenNothingWasWritten(t *testing.T) {
	near, far := net.Pipe()
	require.NoError(t, far.Close())
	got := send(t, NewConn(near), http.MethodPost, "x")
	require.ErrorIs(t, got.err, io.ErrClosedPipe)
	require.Empty(t, got.wrote)
	require.Empty(t, got.done)
}

func TestHasUnread_DetectsBytesWhileIdle(t *testing.T) {
	for name, come := range map[string]func(far net.Conn){
		"bytes":  func(far net.Conn) { _, _ = io.WriteString(far, "HTTP/1.1 299 Forged\r\n\r\n") },
		"an end": func(far net.Conn) { _ = far.Close() },
	} {
		near, far := tcpPair(t)
		c := NewConn(near)
		require.False(t, c.HasUnread(), name)
		come(far)
		require.Eventually(t, c.HasUnread, 5*time.Minute, time.Millisecond, name)
	}
	near, _ := tcpPair(t)
	c := NewConn(near)
	require.NoError(t, near.Close())
	require.True(t, c.HasUnread(), "it was closed")
}

func TestSocket_IsFoundBelowOtherLayers(t *testing.T) {
	near, _ := tcpPair(t)
	require.NotNil(t, NewSocket(tls.Client(near, new(tls.Config))).raw)
	require.NotNil(t, NewSocket(tls.Client(tls.Client(near, new(tls.Config)), new(tls.Config))).raw)
	pipe, far := net.Pipe()
	require.Nil(t, NewSocket(pipe).raw)
	require.False(t, NewSocket(pipe).HasUnread())
	_, _ = pipe.Close(), far.Close()
}

func TestConn_HasNoBuffersBetweenTwoRequests(t *testing.T) {
	near, far := tcpPair(t)
	serve(t, far, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none", "HTTP/1.1 204 No Content\r\n\r\n")
	c := NewConn(near)
	for _, body := range []string{"one", ""} {
		require.Equal(t, body, send(t, c, http.MethodPost, "x").body)
		require.Nil(t, c.in)
		require.Nil(t, c.out)
	}
}
