package notify

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

func TestStatus_UnusualOnesAreResponsesOrErrors(t *testing.T) {
	var text string
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	s := newSender(t, Options{Roots: roots(secure.Certificate())})

	const rest = "\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
	for _, c := range []struct {
		text   string
		status int
		class  policy.ErrorClass
	}{
		{"HTTP/1.1 200 OK" + rest, 200, policy.ClassNone},
		{"HTTP/1.1 200 " + rest, 200, policy.ClassNone},
		{"HTTP/1.1 200" + rest, 200, policy.ClassNone},
		{"HTTP/1.1   200 OK" + rest, 200, policy.ClassNone},
		{"HTTP/1.0 200 OK" + rest, 200, policy.ClassNone},
		{"HTTP/1.1 101 Switching Protocols\r\n\r\n", 101, policy.ClassNone},
		{"HTTP/1.1 299 x" + rest, 299, policy.ClassNone},
		{"HTTP/1.1 600 x" + rest, 600, policy.ClassNone},
		{"HTTP/1.1 999 x" + rest, 999, policy.ClassNone},

		{"HTTP/1.1 000 x" + rest, 0, policy.ClassHTTP},
		{"HTTP/1.1 000" + rest, 0, policy.ClassHTTP},
		{"HTTP/1.1 001 x" + rest, 0, policy.ClassHTTP},
		{"HTTP/1.1 099 x" + rest, 0, policy.ClassHTTP},
		{"HTTP/1.1 +99 x" + rest, 0, policy.ClassHTTP},
		{"HTTP/1.1 -99 x" + rest, 0, policy.ClassHTTP},
		{"HTTP/1.1 20 x" + rest, 0, policy.ClassHTTP},
		{"HTTP/1.1 2000 x" + rest, 0, policy.ClassHTTP},
		{"HTTP/1.1 0x1 x" + rest, 0, policy.ClassHTTP},
		{"HTTP/1.1 2OO OK" + rest, 0, policy.ClassHTTP},
		{"HTTP/1.1\t200 OK" + rest, 0, policy.ClassHTTP},
		{"HTTP/1.1" + rest, 0, policy.ClassHTTP},
		{"HTTP/1.1 " + rest, 0, policy.ClassHTTP},
		{"HTTP 200 OK" + rest, 0, policy.ClassHTTP},
		{"HTTP/one 200 OK" + rest, 0, policy.ClassHTTP},
		{"ICY 200 OK" + rest, 0, policy.ClassHTTP},
		{"200 OK" + rest, 0, policy.ClassHTTP},
		{"<html>as HTTP/0.9 had it</html>\n", 0, policy.ClassHTTP},
		{rest, 0, policy.ClassHTTP},
		{"HTTP/1.1 200 OK\r\nA\r\n\r\n", 0, policy.ClassHTTP},

		{"HTTP/1.1 100 Continue\r\n\r\n", 0, policy.ClassReset},
		{"HTTP/1.1 199 x\r\n\r\n", 0, policy.ClassReset},
		{"HTTP/1.1 200 OK\r\nA: b\r\n", 0, policy.ClassReset},
		{"HTTP/1.1 200 O", 0, policy.ClassReset},
		{"", 0, policy.ClassReset},
		{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 000 x" + rest, 0, policy.ClassHTTP},
	} {
		text = c.text
		for name, server := range map[string]*httptest.Server{"plain": plain, "TLS": secure} {
			result := s.Deliver(t.Context(), newRequest(server.URL))
			require.Equal(t, c.class, result.Class, "%s, %q: %s", name, c.text, result.Error)
			require.Equal(t, c.status, result.Status, "%s, %q", name, c.text)
			require.Equal(t, c.class == policy.ClassNone, result.Error == "", "%s, %q: %s", name, c.text, result.Error)
		}
	}
}
