package connect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

func TestDialer_ClosesSilentTLSConnectionsWithoutError(t *testing.T) {
	server := redistest.StartTLS(t)
	address, err := ParseAddress(server.URL() + "?tls_ca=" + server.CA + "&tls_cert=" + server.Cert + "&tls_key=" +
		server.Key)
	require.NoError(t, err)
	d := newDialer(5*time.Second, 5*time.Second, address.secured, newConnections())
	defer d.end()
	connection, err := d.dial(t.Context(), "tcp", server.Addr())
	require.NoError(t, err)
	d.closeSilent(server.Addr(), time.Now().Add(time.Minute))
	require.NoError(t, connection.Close())
}
