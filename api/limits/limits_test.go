package limits

import (
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBoundConnections_ForgetsWhatIsClosed(t *testing.T) {
	var s http.Server
	BoundConnections(&s, 1, slog.New(slog.DiscardHandler))
	c, _ := s.Handler.(*connections)
	for range 100 {
		ours, theirs := net.Pipe()
		_ = s.ConnContext(t.Context(), theirs)
		require.LessOrEqual(t, len(c.sockets), c.maxOpen)
		require.Equal(t, len(c.sockets), c.idle.Len())
		require.NoError(t, ours.Close())
	}
	for conn := range c.sockets {
		s.ConnState(conn, http.StateClosed)
	}
	require.Empty(t, c.sockets)
	require.Zero(t, c.idle.Len())
}
