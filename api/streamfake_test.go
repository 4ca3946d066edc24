package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// lineResult is a result as a client reads it.
type lineResult struct {
	Index      *int
	ID         string
	State      string
	Status     int
	Error      *problemBody
	Durability *struct {
		Replicas *int
		Synced   *bool
	}
}

// resultIn decodes one line of a response and checks it against the schema.
func resultIn(t testing.TB, text []byte) lineResult {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal(text, &value), "%s", text)
	contract().at("components", "schemas", "BatchResult").holds(t, "result", value)
	var one lineResult
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&one), "%s", text)
	if one.Error != nil {
		require.Equal(t, one.Status, one.Error.Status)
	}
	return one
}

// contract is openapi.yaml, parsed once.
var contract = sync.OnceValue(func() node { return document(new(testing.B)) })

// resultsIn decodes a whole response.
func resultsIn(t testing.TB, answer []byte) []lineResult {
	t.Helper()
	require.True(t, len(answer) == 0 || bytes.HasSuffix(answer, []byte("\n")), "the last line ends too: %q", answer)
	var all []lineResult
	for one := range bytes.Lines(answer) {
		all = append(all, resultIn(t, one))
	}
	return all
}

// streamed sends NDJSON in one piece and reads its results.
func streamed(t testing.TB, h http.Handler, body string) []lineResult {
	t.Helper()
	w := call(t, h, http.MethodPost, "/v1/batch", body, "Content-Type", request.ContentTypeNDJSON)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Equal(t, "application/x-ndjson", w.Header().Get("Content-Type"))
	return resultsIn(t, w.Body.Bytes())
}

// streamOf returns NDJSON of n jobs with the ids 0, 1, … and further members.
func streamOf(n int, more string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`{"id": "` + strconv.Itoa(i) + `"` + more + "}\n")
	}
	return b.String()
}

// observedHandler is a handler that reports its return.
type observedHandler struct {
	http.Handler
	returned chan struct{}
}

func watch(h http.Handler) *observedHandler { return &observedHandler{h, make(chan struct{}, 16)} }

func (h *observedHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() { h.returned <- struct{}{} }()
	h.Handler.ServeHTTP(w, r)
}

// streamClient is the client's end of a stream.
type streamClient struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader // the connection's
	resp *http.Response
	body *bufio.Reader
}

// begin sends a stream's request header over a connection.
func begin(t testing.TB, conn net.Conn, more ...string) *streamClient {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	_, err := io.WriteString(conn, "POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
		"application/x-ndjson\r\n"+
		strings.Join(append(more, ""), "\r\n")+"Transfer-Encoding: chunked\r\n\r\n")
	require.NoError(t, err)
	return &streamClient{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// send sends a text as one chunk; an empty one ends the stream.
func (s *streamClient) send(text string) error {
	_, err := io.WriteString(s.conn, strconv.FormatInt(int64(len(text)), 16)+"\r\n"+text+"\r\n")
	return err
}

// answer reads the response's header.
func (s *streamClient) answer() {
	s.t.Helper()
	resp, err := http.ReadResponse(s.in, &http.Request{Method: http.MethodPost})
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, resp.StatusCode)
	require.True(s.t, resp.Close)
	s.resp, s.body = resp, bufio.NewReader(resp.Body)
}

// result reads the next result.
func (s *streamClient) result() lineResult {
	s.t.Helper()
	text, err := s.body.ReadBytes('\n')
	require.NoError(s.t, err)
	return resultIn(s.t, text)
}

// rest reads all results to the regular end of the response.
func (s *streamClient) rest() []lineResult {
	s.t.Helper()
	text, err := io.ReadAll(s.body)
	require.NoError(s.t, err)
	return resultsIn(s.t, text)
}

// dial connects to a server that serves h with Server's limits and small buffers, over loopback.
func dial(t testing.TB, h http.Handler) net.Conn {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	limits := Server(h, quiet)
	server.Config.ReadTimeout, server.Config.WriteTimeout = limits.ReadTimeout, limits.WriteTimeout
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		tcp, _ := c.(*net.TCPConn)
		require.NoError(t, tcp.SetWriteBuffer(32<<10))
		return ctx
	}
	server.Start()
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	tcp, _ := conn.(*net.TCPConn)
	require.NoError(t, tcp.SetReadBuffer(32<<10))
	return conn
}

// groupingService is a fast service that records the sizes of groups.
type groupingService struct {
	fastService
	mu     sync.Mutex
	groups []int
}

func (g *groupingService) FindStore(context.Context, string) (Store, error) { return g, nil }

func (g *groupingService) Register(ctx context.Context, jobs []job.New) []store.RoutedResult {
	g.mu.Lock()
	g.groups = append(g.groups, len(jobs))
	g.mu.Unlock()
	return g.fastService.Register(ctx, jobs)
}
