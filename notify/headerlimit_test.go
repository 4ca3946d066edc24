package notify

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/notify/h1"
	"github.com/ringback/ringback/policy"
)

func TestHeaderLimit_HoldsForAnswersOverAnyConnection(t *testing.T) {
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
			result := s.Deliver(t.Context(), ask(server.URL))
			require.Equal(t, c.class, result.Class, "%s, %d fields of %d bytes: %s", name, c.fields, c.size, result.Error)
			if c.class == policy.ClassTooLarge {
				require.Equal(t, tooLargeText, result.Error, name)
				require.Zero(t, result.Status, name)
			}
		}
	}
}

// The bound is met while the header comes in, not when it is there.
func TestHeaderLimit_EndsAnAnswerThatHasNoEnd(t *testing.T) {
	for name, text := range map[string]string{
		"short lines":     "HTTP/1.1 200 OK\r\n" + strings.Repeat("a:\r\n", h1.MaxHeaderLines+1),
		"a long line":     "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", h1.MaxHeader),
		"a status line":   "HTTP/1.1 200 " + strings.Repeat("a", h1.MaxHeader),
		"interim answers": strings.Repeat("HTTP/1.1 103 \r\nA: b\r\n\r\n", h1.MaxHeaderLines) + "HTTP/1.1 200 OK\r\nA: b\r\n",
		"folded lines":    "HTTP/1.1 200 OK\r\nA: b\r\n" + strings.Repeat(" c\r\n", h1.MaxHeaderLines),
		"behind spaces":   "HTTP/1.1  103 \r\n\r\nHTTP/1.1 200 OK\n" + strings.Repeat("a:\n", h1.MaxHeaderLines+1),
	} {
		addr := receiver(t, afterRequest(func(conn net.Conn) {
			_, _ = io.WriteString(conn, text)
			hold(conn)
		}))
		result := deliver(t, newSender(t, Options{}), "http://"+addr, 10*time.Second)
		require.Equal(t, policy.ClassTooLarge, result.Class, "%s: %s", name, result.Error)
		require.Less(t, result.Duration, 10*time.Second, name)
	}
}

func TestTLS_ChainsAreBounded(t *testing.T) {
	for _, c := range []struct {
		certificates, size int
		want               error
	}{
		{2, maxChain / 2, nil},
		{2, maxChain/2 + 1, errChainTooLarge},
		{maxCertificates, 1, nil},
		{maxCertificates + 1, 1, errChainTooLarge},
	} {
		cert := &x509.Certificate{Raw: make([]byte, c.size)}
		err := checkChain(tls.ConnectionState{PeerCertificates: slices.Repeat([]*x509.Certificate{cert}, c.certificates)})
		require.ErrorIs(t, err, c.want)
	}
}

func TestTLS_LongTicketsAreNotKept(t *testing.T) {
	var size int
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = quiet
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS13, WrapSession: func(tls.ConnectionState, *tls.SessionState) ([]byte, error) {
		return make([]byte, size), nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	for size = range map[int]bool{100: true, maxTicket: true, maxTicket + 1: false} {
		config := newTLS(roots(server.Certificate()))
		conn, err := tls.Dial("tcp", server.Listener.Addr().String(), config)
		require.NoError(t, err)
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, conn)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		_, kept := config.ClientSessionCache.Get("127.0.0.1")
		require.Equal(t, size <= maxTicket, kept, size)
	}
}
