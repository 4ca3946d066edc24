package redistest_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// silence is how long a test listens for an answer that must not come.
const silence = 100 * time.Millisecond

func TestServer_PausesUntilResumed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	conn := open(t, s.Addr())
	ping(t, conn)
	s.Pause()
	pingInVain(t, conn)
	pingInVain(t, open(t, s.Addr()))
	s.Resume()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	buf := make([]byte, 7)
	_, err := conn.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", string(buf), "what was asked meanwhile is answered now")
}

func TestServer_CanBeStoppedWhilePaused(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*redistest.Server){
		"stop": (*redistest.Server).Stop, "kill": (*redistest.Server).Kill, "cleanup": func(*redistest.Server) {},
	} {
		t.Run(name, func(t *testing.T) {
			addr := ""
			t.Run("server", func(t *testing.T) {
				s := redistest.Start(t)
				addr = s.Addr()
				s.Pause()
				began := time.Now()
				end(s)
				require.Less(t, time.Since(began), patience, "it hears the request as soon as it runs")
			})
			_, err := net.Dial("tcp", addr)
			require.Error(t, err)
		})
	}
}

// patience is how long an answer may take that has to come. It is shorter than the server is given to stop.
const patience = time.Minute

// open is a connection that closes with the test.
func open(t *testing.T, addr string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

// ping asks and is answered.
func ping(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err := conn.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	buf := make([]byte, 7)
	_, err = conn.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", string(buf))
}

// pingInVain asks, and nothing comes, not even an end.
func pingInVain(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(silence)))
	_, err := conn.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout(), err)
}
