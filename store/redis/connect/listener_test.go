package connect

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
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
	case <-time.After(time.Minute):
		require.Fail(t, "Close waits for the server")
	}
	cancel()
	require.NoError(t, silent.Close()) // go-redis reads until the connection is closed, and dials again
	require.NoError(t, asked.Close())
	require.Error(t, <-popped)
}

func TestListener_TakesListsInTurn(t *testing.T) {
	server := miniredis.RunT(t)
	address, err := ParseAddress("redis://" + server.Addr())
	require.NoError(t, err)
	c := New(address, Wait{}, slog.New(slog.DiscardHandler))
	defer func() { require.NoError(t, c.Close()) }()
	keys := []string{"empty", "busy", "calm", "late"}
	for key, elements := range map[string][]string{"busy": {"1", "2", "3", "4"}, "calm": {"a", "b"}, "late": {"x"}} {
		_, err := server.RPush(key, elements...)
		require.NoError(t, err)
	}
	var l Listener
	defer l.Close()
	var popped []string
	for range 5 {
		some, err := l.Pop(t.Context(), c, keys, 1, time.Minute)
		require.NoError(t, err)
		popped = append(popped, some...)
	}
	require.Equal(t, []string{"1", "a", "x", "2", "b"}, popped)
	some, err := l.Pop(t.Context(), c, keys, 9, time.Second)
	require.NoError(t, err)
	require.Equal(t, []string{"3", "4"}, some)
}

func TestListener_KeepsItsConnectionAndWhatItHasTakenWhenTheContextEnds(t *testing.T) {
	server := miniredis.RunT(t)
	address, err := ParseAddress("redis://" + server.Addr())
	require.NoError(t, err)
	c := New(address, Wait{}, slog.New(slog.DiscardHandler))
	defer func() { require.NoError(t, c.Close()) }()
	l := Listener{Interrupt: "interrupt"}
	defer l.Close()
	keys := []string{"a", "b"}
	_, err = server.RPush("a", "0")
	require.NoError(t, err)
	popped, err := l.Pop(t.Context(), c, keys, 9, time.Minute)
	require.NoError(t, err)
	require.Equal(t, []string{"0"}, popped)
	connection := l.client

	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		_, err = l.Pop(ctx, c, keys, 9, time.Minute)
		require.ErrorIs(t, err, context.Canceled)

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, func() {
			_, err := server.RPush("b", "1")
			cancel()
			require.NoError(t, err)
		})
		popped, err = l.Pop(ctx, c, keys, 9, time.Minute)
		if len(popped) == 0 { // the end of the context came first
			require.ErrorIs(t, err, context.Canceled)
			popped, err = l.Pop(t.Context(), c, keys, 9, time.Minute)
		}
		require.NoError(t, err)
		require.Equal(t, []string{"1"}, popped, "an element is never lost")
	}
	require.Same(t, connection, l.client)
	if server.Exists("interrupt") {
		require.Positive(t, server.TTL("interrupt"))
	}

	_, err = server.RPush("interrupt", "")
	require.NoError(t, err)
	_, err = server.RPush("a", "2")
	require.NoError(t, err)
	popped, err = l.Pop(t.Context(), c, keys, 9, time.Nanosecond)
	require.NoError(t, err)
	require.Equal(t, []string{"2"}, popped, "a late interrupt does not end the look at the lists")
}
