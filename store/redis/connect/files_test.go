package connect

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// The files change from those of one authority to those of another, for the server and for the client.
func TestLoadFiles_HoldsForNewConnections(t *testing.T) {
	before, server := redistest.StartTLS(t), redistest.StartTLS(t)
	dir := t.TempDir()
	ca, cert, key := filepath.Join(dir, "ca"), filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	replace := func(name, by string) {
		text, err := os.ReadFile(by)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, slices.Concat([]byte("\xef\xbb\xbf"), text), 0o600)) // a byte order mark
	}
	replace(ca, before.CA)
	replace(cert, before.Cert)
	replace(key, before.Key)
	address, err := ParseAddress(server.URL() + "?tls_ca=" + ca + "&tls_cert=" + cert + "&tls_key=" + key)
	require.NoError(t, err)
	require.Equal(t, []string{ca, cert, key}, address.Files())
	require.Equal(t, []string{ca, cert}, address.Certificates())
	// check pings over a new connection.
	check := func() error {
		c := New(address, Wait{}, slog.New(slog.DiscardHandler))
		defer func() { _ = c.Close() }()
		return c.Check(t.Context())
	}
	client := New(address, Wait{}, slog.New(slog.DiscardHandler))
	defer func() { _ = client.Close() }()
	require.ErrorContains(t, client.Check(t.Context()), "certificate")

	replace(ca, server.CA)
	require.NoError(t, client.LoadFiles())
	require.Error(t, check(), "the server refuses the client's certificate")
	replace(cert, server.Cert)
	require.ErrorContains(t, client.LoadFiles(), "tls_cert and tls_key", "its key is another's")
	require.Error(t, check())
	replace(key, server.Key)
	require.NoError(t, client.LoadFiles())
	require.NoError(t, check())
	require.NoError(t, client.Check(t.Context()))
	require.NoError(t, os.WriteFile(ca, []byte("x"), 0o600))
	require.ErrorContains(t, client.LoadFiles(), "holds no certificate")
	require.NoError(t, os.WriteFile(ca, []byte("-\x00-\x00"), 0o600))
	require.ErrorContains(t, client.LoadFiles(), "is in UTF-16")
	require.NoError(t, check())
}
