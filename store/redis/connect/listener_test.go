package connect

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestListener_ClosesWhileAClusterIsAskedForTheServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and sends nothing
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	asked := make(chan struct{})
	go func() {
		if conn, err := silent.Accept(); err == nil {
			close(asked)
			<-t.Context().Done()
			_ = conn.Close() // the client may have closed it
		}
	}()
	address, err := ParseAddress("redis+cluster://" + silent.Addr().String() + "?read_timeout=1m")
	require.NoError(t, err)
	c := New(address, Wait{}, slog.New(slog.DiscardHandler))
	defer func() { require.NoError(t, c.Close()) }()

	var l Listener
	ctx, cancel := context.WithCancel(t.Context())
	popped := make(chan error, 1)
	go func() {
		_, err := l.Pop(ctx, c, "key", 1, time.Minute)
		popped <- err
	}()
	<-asked
	closed := make(chan struct{})
	go func() {
		l.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		require.Fail(t, "Close waits for the server")
	}
	cancel()
	require.Error(t, <-popped)
}
