package notify

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/h1"
	"github.com/ringback/ringback/policy"
)

// receivedRequest is a request that a receiver got.
type receivedRequest struct {
	*http.Request
	body []byte
}

// recordingServer responds with 200 and sends its requests to the channel.
func recordingServer(t testing.TB, start func(*httptest.Server)) (*httptest.Server, <-chan receivedRequest) {
	t.Helper()
	got := make(chan receivedRequest, 16)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- receivedRequest{r, body}
	}))
	start(server)
	t.Cleanup(server.Close)
	return server, got
}

func TestDeliver_SendsTheDocumentedRequest(t *testing.T) {
	server, got := recordingServer(t, (*httptest.Server).Start)
	s := newSender(t, Options{Agent: "Ringback/1.2.3"})
	req := newRequest(server.URL + "/hooks/close?a=1")
	req.Body = []byte("{\"order\":\t4711, \"x\": \"\xff\" }\n")
	req.Header = map[string][]string{
		"X-Tenant":            {"42", "43"},
		"Idempotency-Key":     {"k"},
		"Webhook-Id":          {"forged"},
		"Webhook-Signature":   {"forged"},
		"Ringback-Attempt":    {"99"},
		"Ringback-Other":      {"forged"},
		"Webhook_id":          {"forged"}, // to receivers behind CGI it is Webhook-Id
		"Ringback_attempt":    {"forged"},
		"Ringback.Attempt":    {"forged"},
		"Transfer_encoding":   {"chunked"},
		"Content_length":      {"1"},
		"Proxy":               {"http://forged.example"},
		"User-Agent":          {"Shop/7"},
		"Content-Type":        {"text/forged"},
		"Host":                {"forged"},
		"Content-Length":      {"1"},
		"Transfer-Encoding":   {"chunked"},
		"Connection":          {"close"},
		"Proxy-Authorization": {"x"},
		"Authorization":       {"Bearer t"},
	}
	before := time.Now().Unix()
	result := s.Deliver(t.Context(), req)
	require.Equal(t, policy.ClassNone, result.Class, result.Error)
	require.Equal(t, http.StatusOK, result.Status)
	require.Positive(t, result.Duration)
	require.WithinDuration(t, time.Now(), result.StartedAt, time.Minute)

	r := <-got
	require.Equal(t, req.Body, r.body)
	require.Equal(t, "POST", r.Method)
	require.Equal(t, "/hooks/close?a=1", r.RequestURI)
	require.Equal(t, strings.TrimPrefix(server.URL, "http://"), r.Host)
	require.Equal(t, int64(len(req.Body)), r.ContentLength)
	require.Empty(t, r.TransferEncoding)
	sent, err := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
	require.NoError(t, err)
	require.InDelta(t, before, sent, 5)
	delete(r.Header, "Webhook-Timestamp")
	require.Equal(t, http.Header{
		"Webhook-Id":            {"job-1"},
		"Ringback-Topic":        {"order.close"},
		"Ringback-Attempt":      {"3"},
		"Ringback-Retries-Left": {"7"},
		"Ringback-Due-At":       {"1700000000123"},
		"User-Agent":            {"Shop/7"},
		"Content-Type":          {"application/json"},
		"Content-Length":        {strconv.Itoa(len(req.Body))},
		"Accept-Encoding":       {"identity"},
		"X-Tenant":              {"42", "43"},
		"Idempotency-Key":       {"k"},
		"Authorization":         {"Bearer t"},
	}, r.Header)
	require.Equal(t, []string{"forged"}, req.Header["Webhook-Id"], "the job's header is not changed")

	req.Header = nil
	require.Equal(t, http.StatusOK, s.Deliver(t.Context(), req).Status)
	require.Equal(t, "Ringback/1.2.3", (<-got).Header.Get("User-Agent"), "where the job names none")

	tick := time.Unix(1_900_000_000, 0)
	req.Ref.ID = job.TickID("daily", tick)
	require.Equal(t, http.StatusOK, s.Deliver(t.Context(), req).Status)
	require.Equal(t, []string{"1900000000000"}, (<-got).Header["Ringback-Scheduled-At"])
}

func TestDeliver_SendsHeaderNamesInTheDocumentedCase(t *testing.T) {
	heads := make(chan string, 1)
	addr := receiver(t, func(conn net.Conn) {
		var head strings.Builder
		r := bufio.NewReader(io.TeeReader(conn, &head))
		for readRequest(r) {
			heads <- head.String()
			_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
			head.Reset()
		}
	})
	s := newSender(t, Options{})
	for _, length := range []int{1, h1.MaxBody + 1} { // by package h1, and by net/http
		for written, sent := range map[string]string{
			"Soapaction": "SOAPAction", "SOAPACTION": "SOAPAction",
			"x-ms-version": "X-Ms-Version", "Idempotency-Key": "idempotency-key",
		} {
			req := newRequest("http://" + addr)
			req.Header, req.Body = map[string][]string{written: {"a"}}, bytes.Repeat([]byte("x"), length)
			require.Equal(t, http.StatusNoContent, s.Deliver(t.Context(), req).Status)
			require.Contains(t, <-heads, "\r\n"+sent+": a\r\n", length)
		}
	}
}

// The bytes on the wire: the measures against replays by net/http must not show.
func TestDeliver_FramesByLengthWithEveryMethod(t *testing.T) {
	heads := make(chan string, 1)
	addr := receiver(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		for {
			var head strings.Builder
			length := 0
			for {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if line == "\r\n" {
					break
				}
				head.WriteString(strings.ToLower(line))
				_, _ = fmt.Sscanf(strings.ToLower(line), "content-length: %d", &length)
			}
			body := make([]byte, length)
			if _, err := io.ReadFull(r, body); err != nil {
				return
			}
			heads <- head.String() + "\n" + string(body)
			_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	})
	s := newSender(t, Options{})
	for _, test := range []struct{ method, body, length string }{
		{"POST", "x", "content-length: 1"},
		{"POST", "", "content-length: 0"},
		{"PUT", "x", "content-length: 1"},
		{"PUT", "", "content-length: 0"},
		{"PATCH", "", "content-length: 0"},
		{"GET", "", ""},
		{"GET", "x", "content-length: 1"},
		{"DELETE", "", ""},
		{"DELETE", "x", "content-length: 1"},
	} {
		req := newRequest("http://" + addr + "/")
		req.Method, req.Body = test.method, []byte(test.body)
		result := s.Deliver(t.Context(), req)
		require.Equal(t, 204, result.Status, result.Error)
		head, body, _ := strings.Cut(<-heads, "\n\n")
		require.Equal(t, test.body, strings.TrimPrefix(body, "\n"))
		require.NotContains(t, head, "transfer-encoding")
		require.NotContains(t, head, "connection:")
		if test.length == "" {
			require.NotContains(t, head, "content-length")
		} else {
			require.Contains(t, head, test.length, test.method)
		}
	}
}

func TestClose_ClosesIdleConnections(t *testing.T) {
	var conns atomic.Int32
	closed := make(chan struct{}, 8)
	server, _ := recordingServer(t, func(s *httptest.Server) {
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				conns.Add(1)
			case http.StateClosed:
				closed <- struct{}{}
			}
		}
		s.Start()
	})
	s := newSender(t, Options{})
	for range 5 {
		require.Equal(t, 200, s.Deliver(t.Context(), newRequest(server.URL)).Status)
	}
	require.Equal(t, int32(1), conns.Load())
	s.Close()
	<-closed
}

func TestHTTP2_IsUsedWhereItIsOffered(t *testing.T) {
	server, got := recordingServer(t, func(s *httptest.Server) {
		s.EnableHTTP2 = true
		s.StartTLS()
	})
	s := newSender(t, Options{Roots: roots(server.Certificate())})
	for _, body := range []string{"x", ""} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			req := newRequest(server.URL)
			req.Method, req.Body = method, []byte(body)
			result := s.Deliver(t.Context(), req)
			require.Equal(t, 200, result.Status, result.Error)
			r := <-got
			require.Equal(t, 2, r.ProtoMajor)
			require.Equal(t, method, r.Method)
			require.Equal(t, body, string(r.body))
			require.Equal(t, "job-1", r.Header.Get("webhook-id"))
		}
	}
}

func TestDeliver_OverHTTPSWithoutHTTP2(t *testing.T) {
	server, got := recordingServer(t, (*httptest.Server).StartTLS)
	s := newSender(t, Options{Roots: roots(server.Certificate())})
	for range 2 {
		result := s.Deliver(t.Context(), newRequest(server.URL))
		require.Equal(t, 200, result.Status, result.Error)
		require.Equal(t, 1, (<-got).ProtoMajor)
	}
}

func TestDeliver_BoundsStoredResponses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "secret=1")
		w.Header().Set("X-Small", "here")
		if r.URL.Path == "/large" {
			for i := range 14 {
				w.Header().Set(fmt.Sprintf("X-Large-%02d", i), strings.Repeat("v", 1000))
			}
		}
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("\xff\xfe" + strings.Repeat("b", 3000)))
	}))
	t.Cleanup(server.Close)
	s := newSender(t, Options{})

	small := s.Deliver(t.Context(), newRequest(server.URL))
	require.Equal(t, 418, small.Status)
	require.Equal(t, policy.ClassNone, small.Class)
	require.Equal(t, "\xff\xfe"+strings.Repeat("b", job.MaxAttemptBody-2), string(small.Body))
	require.Equal(t, []string{"here"}, small.Header["X-Small"])
	require.NotContains(t, small.Header, "Set-Cookie")

	large := s.Deliver(t.Context(), newRequest(server.URL+"/large"))
	require.Equal(t, 418, large.Status)
	require.NotContains(t, large.Header, "Set-Cookie")
	size := 0
	for name, values := range large.Header {
		for _, v := range values {
			require.LessOrEqual(t, len(v), maxValue)
			size += len(name) + len(v)
		}
	}
	require.LessOrEqual(t, size, job.MaxAttemptHeader)
	require.Greater(t, size, job.MaxAttemptHeader*3/4)
	require.Contains(t, large.Header, "X-Large-00")
}

// Package policy decides which of them are failures.
func TestDeliver_ReportsRetryAfter(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.Header().Set("Retry-After", "90")
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	s := newSender(t, Options{})
	for status, wait := range map[int]time.Duration{
		200: 90 * time.Second, 404: 90 * time.Second, 301: 90 * time.Second,
		429: 90 * time.Second, 503: 90 * time.Second,
	} {
		result := s.Deliver(t.Context(), newRequest(fmt.Sprintf("%s/%d", server.URL, status)))
		require.Equal(t, status, result.Status)
		require.Equal(t, wait, result.RetryAfter, status)
	}
}

func TestDeliver_ReportsNonretryable(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ringback-nonretryable", r.URL.Query().Get("say"))
		w.WriteHeader(http.StatusUnprocessableEntity)
	}))
	t.Cleanup(server.Close)
	s := newSender(t, Options{})
	for say, wanted := range map[string]bool{
		"true": true, "TRUE": true, "%20True%20": true, "": false, "1": false, "false": false, "truth": false,
	} {
		result := s.Deliver(t.Context(), newRequest(server.URL+"/?say="+say))
		require.Equal(t, 422, result.Status)
		require.Equal(t, wanted, result.NonRetryable, say)
	}
}

func TestDeliver_KeepsTheRequestedPartOfABody(t *testing.T) {
	const sent = 100 << 10
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("b", sent))
	}))
	t.Cleanup(server.Close)
	s := newSender(t, Options{})
	for asked, kept := range map[int]int{
		-1: job.MaxAttemptBody, 0: job.MaxAttemptBody, 1: 1, 1500: 1500, 10_000: 10_000, MaxRead: MaxRead,
		MaxRead + 1: MaxRead, 1 << 30: MaxRead,
	} {
		req := newRequest(server.URL)
		req.KeepBody = asked
		result := s.Deliver(t.Context(), req)
		require.Equal(t, policy.ClassNone, result.Class, result.Error)
		require.Len(t, result.Body, kept, "asked for %d", asked)
	}
}

func TestDeliver_DoesNotFollowRedirects(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	result := newSender(t, Options{}).Deliver(t.Context(), newRequest(server.URL))
	require.Equal(t, 307, result.Status)
	require.Equal(t, policy.ClassNone, result.Class)
	require.Equal(t, []string{"/elsewhere"}, result.Header["Location"])
	require.Equal(t, int32(1), calls.Load())
}

func TestRequest_EscapesThePath(t *testing.T) {
	s := newSender(t, Options{})
	r, err := s.request(t.Context(), time.Now(), newRequest("http://127.0.0.1:1/a b\u00a0c/%20?q=%20"))
	require.NoError(t, err)
	require.Equal(t, "/a%20b%C2%A0c/%20?q=%20", r.URL.RequestURI())
}

func TestRequest_UnbuildableIsInvalid(t *testing.T) {
	s := newSender(t, Options{})
	tests := map[string]func(*job.Request){
		"no URL":             func(r *job.Request) { r.URL = "" },
		"unreadable URL":     func(r *job.Request) { r.URL = "http://user:topsecret@host:80x/" },
		"another scheme":     func(r *job.Request) { r.URL = "ftp://topsecret@127.0.0.1/" },
		"no host":            func(r *job.Request) { r.URL = "http:///topsecret" },
		"port out of range":  func(r *job.Request) { r.URL = "http://127.0.0.1:99999/?topsecret" },
		"method":             func(r *job.Request) { r.Method = "PO ST" },
		"no method":          func(r *job.Request) { r.Method = "" },
		"header name":        func(r *job.Request) { r.Header = map[string][]string{"X Y": {"topsecret"}} },
		"header value":       func(r *job.Request) { r.Header = map[string][]string{"X-Y": {"topsecret\r\nZ: 1"}} },
		"content type":       func(r *job.Request) { r.ContentType = "a\nb" },
		"empty header name":  func(r *job.Request) { r.Header = map[string][]string{"": {"topsecret"}} },
		"bad host character": func(r *job.Request) { r.URL = "http://a b/?topsecret" },
		"blank in the query": func(r *job.Request) { r.URL = "http://127.0.0.1:1/?topsecret HTTP/1.1" },
		"line in the query":  func(r *job.Request) { r.URL = "http://127.0.0.1:1/?topsecret\r\nX: y" },
		"blank after a host": func(r *job.Request) { r.URL = "http://127.0.0.1:1? topsecret" },
	}
	for name, spoil := range tests {
		req := newRequest("http://127.0.0.1:1/")
		spoil(&req)
		result := s.Deliver(t.Context(), req)
		require.Equal(t, policy.ClassInvalid, result.Class, "%s: %s", name, result.Error)
		require.NotEmpty(t, result.Error)
		require.NotContains(t, result.Error, "topsecret")
	}
}

func TestDeliver_CancelledContextIsAShutdown(t *testing.T) {
	reached := make(chan struct{})
	addr := receiver(t, func(conn net.Conn) {
		readRequest(bufio.NewReader(conn))
		close(reached)
		_, _ = conn.Read(make([]byte, 1))
	})
	s := newSender(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	result := s.Deliver(ctx, newRequest("http://"+addr))
	require.Equal(t, policy.ClassShutdown, result.Class, result.Error)
	require.Zero(t, result.Status)

	result = s.Deliver(ctx, newRequest("http://"+addr))
	require.Equal(t, policy.ClassShutdown, result.Class, "cancelled before it began")

	short, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	result = s.Deliver(short, newRequest("http://"+addr))
	require.Equal(t, policy.ClassShutdown, result.Class, "the caller's own deadline is not the receiver's fault")
}

func TestOptions_AreValidated(t *testing.T) {
	_, err := New(Options{MaxIdle: -1})
	require.ErrorContains(t, err, "MaxIdle is negative")
	_, err = New(Options{Agent: "a\nb"})
	require.ErrorContains(t, err, "Agent has characters")
}
