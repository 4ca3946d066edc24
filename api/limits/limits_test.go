package limits

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBoundConnections_ForgetsWhatIsClosed(t *testing.T) {
	var s http.Server
	BoundConnections(&s, 1, slog.New(slog.DiscardHandler))
	c, _ := s.Handler.(*connections)
	for range 100 {
		ours, theirs := net.Pipe()
		_ = s.ConnContext(t.Context(), theirs)
		require.LessOrEqual(t, len(c.open), c.maxOpen)
		require.Equal(t, len(c.open), c.idle.Len())
		require.NoError(t, ours.Close())
	}
	for conn := range c.open {
		s.ConnState(conn, http.StateClosed)
	}
	require.Empty(t, c.open)
	require.Zero(t, c.idle.Len())
}

func TestLog_WritesALineASecondAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := Log{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		for range 30 {
			l.Warn("a thing")
			time.Sleep(LogInterval / 10)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		require.Len(t, lines, 3)
		require.NotContains(t, lines[0], "suppressed")
		require.Contains(t, lines[1], "suppressed=9")
	})
}
