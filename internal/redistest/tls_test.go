package redistest_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

func TestServer_RequiresAClientCertificateOverTLS(t *testing.T) {
	t.Parallel()
	s := redistest.StartTLS(t, "--requirepass", "secret")
	require.Equal(t, "rediss://"+s.Addr(), s.URL())
	ca, err := os.ReadFile(s.CA)
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM(ca))
	pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
	require.NoError(t, err)

	ping := func(config *tls.Config) error {
		client := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: "secret", TLSConfig: config, MaxRetries: -1})
		defer func() { require.NoError(t, client.Close()) }()
		return client.Ping(t.Context()).Err()
	}
	for _, name := range []string{"127.0.0.1", "localhost"} {
		require.NoError(t, ping(&tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{pair}, ServerName: name}))
	}
	require.ErrorContains(t, ping(&tls.Config{Certificates: []tls.Certificate{pair}}), "unknown authority")
	require.Error(t, ping(&tls.Config{RootCAs: trusted}), "it asks for a certificate")
	require.Error(t, ping(nil), "it speaks TLS alone")
}
