package api

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/console"
	"github.com/ringback/ringback/console/assets"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/internal/testkit"
)

// boundedServer serves h with a bound on connections.
func boundedServer(t *testing.T, h http.Handler, bound int) (server *httptest.Server, log *testkit.Log) {
	t.Helper()
	log = new(testkit.Log)
	server = httptest.NewUnstartedServer(h)
	server.Config = Server(h, quiet)
	limits.BoundConnections(server.Config, bound, slog.New(slog.NewTextHandler(log, nil)))
	server.Start()
	t.Cleanup(server.Close)
	return server, log
}

func connect(t *testing.T, server *httptest.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// askOver makes a request over a connection and returns the status.
func askOver(t *testing.T, conn net.Conn) (int, error) {
	t.Helper()
	_, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Body.Close()
}

func TestBoundConnections_ServesNewcomersWhileOthersIdle(t *testing.T) {
	const bound = 16
	server, log := boundedServer(t, handlerOf(newFake()), bound)
	used := connect(t, server) // a keep-alive connection, used all along
	for i := range 10 * bound {
		idle := connect(t, server)
		switch i % 3 {
		case 0: // it sends nothing
		case 1: // a part of a header
			_, err := io.WriteString(idle, "GET /healthz HTTP/1.1\r\nX-Slow: ")
			require.NoError(t, err)
		default: // it was used once
			status, err := askOver(t, idle)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status)
		}
		if i%8 == 0 {
			status, err := askOver(t, used)
			require.NoError(t, err, "a connection in use outlives idle ones")
			require.Equal(t, http.StatusOK, status)
		}
	}
	server.Close()
	require.Contains(t, log.String(), "closing the ones idle for longest")
	require.Less(t, strings.Count(log.String(), "\n"), 100)
}

func TestBoundConnections_AnswersBeyondTheBound(t *testing.T) {
	const bound = 8
	entered, leave := make(chan struct{}), make(chan struct{})
	server, log := boundedServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			return
		}
		entered <- struct{}{}
		<-leave
	}), bound)
	leaveAll := sync.OnceFunc(func() { close(leave) })
	t.Cleanup(leaveAll) // else a failed test waits for the handlers
	var conns []net.Conn
	for range bound {
		conn := connect(t, server)
		_, err := io.WriteString(conn, "GET /v1/stats HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		conns = append(conns, conn)
		<-entered
	}
	for range 3 * bound {
		conn := connect(t, server)
		_, err := io.WriteString(conn, "GET /v1/stats HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		require.Equal(t, "1", resp.Header.Get("Retry-After"))
		require.True(t, resp.Close)
		require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
		require.NoError(t, resp.Body.Close())
	}
	status, err := askOver(t, connect(t, server))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, "a process that is busy is alive")
	leaveAll()
	for _, conn := range conns {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode, "those under way are not cut off")
		require.NoError(t, resp.Body.Close())
	}
	server.Close()
	require.Contains(t, log.String(), "too many requests in flight")
}

// unknownSenders are the beginnings of requests without a token, whose rest never comes and whose answer is not read.
func unknownSenders() map[string]string {
	const body = "Host: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: " +
		"60000\r\n\r\ntoken="
	all := make(map[string]string)
	for _, line := range []string{
		"POST /console/sign-in", "POST /console/jobs", "POST /v1/jobs", "GET /openapi.json", "GET /metrics",
		"GET /console/" + assets.Path("htmx.min.js"),
	} {
		all[line+" with a body"] = line + " HTTP/1.1\r\n" + body
		all[line] = line + " HTTP/1.1\r\nHost: localhost\r\n\r\n"
	}
	return all
}

func TestBoundConnections_UnknownSendersHoldNothingThatOthersNeed(t *testing.T) {
	tokens := []logs.Secret{"root"}
	for name, request := range unknownSenders() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const bound = 16
				server := Server(New(Options{
					Service: newFake(), Logger: quiet, Access: AccessOptions{Tokens: tokens},
					Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						_, _ = io.WriteString(w, strings.Repeat("x", 64<<10))
					}),
					Console: func(routes http.Handler, _ func(func()) func() bool) http.Handler {
						return console.New(console.Options{
							API: routes, RootTokens: tokens,
							KeyRounds: 1, Logger: quiet,
						})
					},
				}), quiet)
				limits.BoundConnections(server, bound, quiet)
				l := &pipes{make(chan net.Conn), make(chan struct{})}
				served := make(chan error)
				go func() { served <- server.Serve(l) }()
				defer func() { // also when the test fails
					require.NoError(t, server.Close())
					require.Equal(t, http.ErrServerClosed, <-served)
				}()
				dial := func(text string) net.Conn {
					ours, theirs := net.Pipe()
					l.conns <- theirs
					t.Cleanup(func() { _ = ours.Close() })
					_, err := io.WriteString(ours, text)
					require.NoError(t, err)
					return ours
				}
				status := func(path string) int {
					request := "GET " + path +
						" HTTP/1.1\r\nAuthorization: Bearer root\r\nHost: localhost\r\nConnection: close\r\n\r\n"
					if form, ok := strings.CutPrefix(path, "POST "); ok {
						request = "POST " + form +
							" HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n" +
							"Host: localhost\r\nConnection: close\r\n\r\ntoken=root"
					}
					conn := dial(request)
					resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
					require.NoError(t, err)
					_, err = io.Copy(io.Discard, resp.Body)
					require.NoError(t, err)
					return resp.StatusCode
				}
				began := time.Now()
				for range 2 * limits.MaxConnections(bound) { // beyond it, the slowest ones are closed
					dial(request)
					synctest.Wait()
				}
				for _, path := range []string{
					"/v1/whoami", "/healthz", "/readyz", "/console/sign-in",
					"/console/" + assets.Path("htmx.min.js"), "/openapi.json",
				} {
					require.Equal(t, http.StatusOK, status(path), path)
				}
				require.Equal(t, http.StatusSeeOther, status("POST /console/sign-in"))
				require.Equal(t, began, time.Now(), "nobody waited")
				time.Sleep(limits.OpenWriteTimeout + time.Second)
				require.Equal(t, http.StatusOK, status("/metrics"))
			})
		})
	}
}
