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
	address, err := ParseAddress("redis+cluster://" + silent.Addr().String() + "?read_timeout=1m")
	require.NoError(t, err)
	c := New(address, Wait{}, slog.New(slog.DiscardHandler))
	defer func() { require.NoError(t, c.Close()) }()

	var l Listener
	ctx, cancel := context.WithCancel(t.Context())
	popped := make(chan error, 1)
	go func() {
		_, err := l.Pop(ctx, c, []string{"key"}, 1, time.Minute)
		popped <- err
	}()
	asked, err := silent.Accept()
	require.NoError(t, err)
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
	require.NoError(t, silent.Close()) // go-redis reads until the connection is closed, and dials again
	require.NoError(t, asked.Close())
	require.Error(t, <-popped)
}
