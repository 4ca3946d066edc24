package conn

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTLS_BoundsCertificateChains(t *testing.T) {
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
		err := checkChain(tls.ConnectionState{PeerCertificates: slices.Repeat([]*x509.Certificate{cert},
			c.certificates)})
		require.ErrorIs(t, err, c.want)
	}
}

func TestTLS_KeepsNoLongTickets(t *testing.T) {
	var size int
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = discardLog
	server.TLS = &tls.Config{
		MinVersion: tls.VersionTLS13, WrapSession: func(tls.ConnectionState, *tls.SessionState) ([]byte, error) {
			return make([]byte, size), nil
		},
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	for size = range map[int]bool{100: true, maxTicket: true, maxTicket + 1: false} {
		config := newTLS()
		config.RootCAs = roots(server)
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
