package redistest_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProxy_StallsOpenConnections(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, redistest.Start(t).Addr())
	old := open(t, p.Addr())
	ping(t, old)
	p.Stall()
	pingInVain(t, old)
	fresh := open(t, p.Addr())
	ping(t, fresh)
	pingInVain(t, old)
	p.Cut()
	ended(t, old)
	ended(t, fresh)
}

func TestProxy_CutsOpenConnections(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s.Addr())
	old := open(t, p.Addr())
	ping(t, old)
	p.Cut()
	ended(t, old)
	fresh := open(t, p.Addr())
	ping(t, fresh)
	s.Kill()
	ended(t, fresh) // what the server closes is closed
	ended(t, open(t, p.Addr()))
}

func TestProxy_BlocksNewConnections(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, redistest.Start(t).Addr())
	old := open(t, p.Addr())
	ping(t, old)
	p.Block()
	blocked := open(t, p.Addr())
	pingInVain(t, blocked)
	ping(t, old)
	p.Unblock()
	ping(t, open(t, p.Addr()))
	pingInVain(t, blocked)
}

func TestProxy_EndsWithItsTest(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var conn net.Conn
	outer := t
	t.Run("proxy", func(t *testing.T) {
		conn = open(outer, redistest.StartProxy(t, s.Addr()).Addr())
		ping(t, conn)
	})
	ended(t, conn)
}

// ended waits until a connection is closed from the other side.
func ended(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err := conn.Read(make([]byte, 1))
	if !errors.Is(err, io.EOF) {
		require.ErrorContains(t, err, "reset")
	}
}
