package notify

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/notify/h1"
	"github.com/ringback/ringback/policy"
)

func TestHeaderLimit_AppliesToEveryConnection(t *testing.T) {
	var fields, size int
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil
		for n := range fields {
			w.Header()[fmt.Sprintf("X-%03d", n)] = []string{strings.Repeat("v", size)}
		}
		w.WriteHeader(http.StatusNoContent)
	})
	plain := httptest.NewServer(handler)
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(handler)
	t.Cleanup(secure.Close)
	http2 := httptest.NewUnstartedServer(handler)
	http2.EnableHTTP2 = true
	http2.StartTLS()
	t.Cleanup(http2.Close)
	s := newSender(t, Options{Roots: roots(secure.Certificate())})

	for _, c := range []struct {
		fields, size int
		class        policy.ErrorClass
	}{
		{h1.MaxHeaderLines, 1, policy.ClassNone},
		{h1.MaxHeaderLines + 1, 1, policy.ClassTooLarge},
		{10, h1.MaxHeader/10 - 100, policy.ClassNone},
		{10, h1.MaxHeader / 10, policy.ClassTooLarge},
		{1000, 1, policy.ClassTooLarge},
	} {
		fields, size = c.fields, c.size
		for name, server := range map[string]*httptest.Server{"plain": plain, "TLS": secure, "HTTP/2": http2} {
			result := s.Deliver(t.Context(), newRequest(server.URL))
			require.Equal(t, c.class, result.Class, "%s, %d fields of %d bytes: %s", name,
				c.fields, c.size, result.Error)
			if c.class == policy.ClassTooLarge {
				require.Equal(t, tooLargeText, result.Error, name)
				require.Zero(t, result.Status, name)
			}
		}
	}
}

// The limit applies while the header is read.
func TestHeaderLimit_EndsEndlessHeaders(t *testing.T) {
	for name, text := range map[string]string{
		"short lines":   "HTTP/1.1 200 OK\r\n" + strings.Repeat("a:\r\n", h1.MaxHeaderLines+1),
		"a long line":   "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", h1.MaxHeader),
		"a status line": "HTTP/1.1 200 " + strings.Repeat("a", h1.MaxHeader),
		"interim answers": strings.Repeat("HTTP/1.1 103 \r\nA: b\r\n\r\n", h1.MaxHeaderLines) +
			"HTTP/1.1 200 OK\r\nA: b\r\n",
		"folded lines":  "HTTP/1.1 200 OK\r\nA: b\r\n" + strings.Repeat(" c\r\n", h1.MaxHeaderLines),
		"behind spaces": "HTTP/1.1  103 \r\n\r\nHTTP/1.1 200 OK\n" + strings.Repeat("a:\n", h1.MaxHeaderLines+1),
	} {
		addr := receiver(t, afterRequest(func(conn net.Conn) {
			_, _ = io.WriteString(conn, text)
			holdOpen(conn)
		}))
		result := deliver(t, newSender(t, Options{}), "http://"+addr, 2*time.Minute)
		require.Equal(t, policy.ClassTooLarge, result.Class, "%s: %s", name, result.Error)
	}
}
