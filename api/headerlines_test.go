package api

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/api/limits"
)

func TestLimitHeaders_BoundsTheLinesOfEachHeader(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config = Server(handlerOf(newFake()), quiet)
	limits.BoundConnections(server.Config, 8, quiet)
	server.Listener = limits.LimitHeaders(server.Listener)
	server.Start()
	t.Cleanup(server.Close)

	header := func(fields int) string {
		var text strings.Builder
		text.WriteString("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
		for n := range fields {
			fmt.Fprintf(&text, "X-%d:\r\n", n)
		}
		return text.String()
	}
	conn := connect(t, server)
	answers := bufio.NewReader(conn)
	body := `{"id": "a"` + strings.Repeat("\n", 50*limits.MaxHeaderLines) + "}"
	for n := range 3 { // each has its own, and the lines of bodies do not count
		_, err := io.WriteString(conn,
			header(limits.MaxHeaderLines-4)+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))+body)
		require.NoError(t, err)
		resp, err := http.ReadResponse(answers, nil)
		require.NoError(t, err, n)
		require.Less(t, resp.StatusCode, 300)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}

	// One more ends the connection, although the header has not ended.
	conn = connect(t, server)
	_, err := io.WriteString(conn, header(limits.MaxHeaderLines-2))
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(answer), "HTTP/1.1 400 "), "%s", answer)
}
