package redis

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/store"
)

func TestDial_DetectsAllSilentConnectionsAtOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	s := open(t, Options{URL: "redis://" + proxy.Addr() + "?read_timeout=4s"})
	const many = 32
	// Concurrent calls, so that there are as many connections.
	held := make(chan struct{})
	var busy sync.WaitGroup
	for range many {
		busy.Go(func() {
			<-held
			_ = s.Ping(t.Context())
		})
	}
	close(held)
	busy.Wait()
	proxy.Stall()
	began := time.Now()
	_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("a")})
	require.NoError(t, err, "the call was made again on a new connection")
	// Each silent connection that is tried takes four seconds.
	require.Less(t, time.Since(began), time.Minute)
	for range many {
		busy.Go(func() {
			if err := s.Ping(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	busy.Wait()
	require.Less(t, time.Since(began), time.Minute)
}

func TestDial_DoesNotUseClosedTLSConnections(t *testing.T) {
	t.Parallel()
	server := redistest.StartTLS(t, "--appendonly", "yes")
	s := open(t,
		Options{URL: server.URL() + "?tls_ca=" + server.CA + "&tls_cert=" + server.Cert + "&tls_key=" + server.Key})
	var busy sync.WaitGroup
	for range 32 {
		busy.Go(func() { _ = s.Ping(t.Context()) })
	}
	busy.Wait()
	server.Kill()
	server.Restart()
	for range 60 {
		require.NoError(t, s.Ping(t.Context()))
	}
	require.NoError(t, s.Close())
}

func TestWait_EndsWithItsContextWhileConnecting(t *testing.T) {
	t.Parallel()
	server := redistest.StartTLS(t)
	proxy := redistest.StartProxy(t, server.Addr())
	files := "?tls_ca=" + server.CA + "&tls_cert=" + server.Cert + "&tls_key=" + server.Key
	s := open(t, Options{URL: "rediss://" + proxy.Addr() + files + "&dial_timeout=10m"})
	proxy.Block()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	began := time.Now()
	_, err := s.Shards()[0].Wait(ctx, store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: 10 * time.Minute})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(began), 5*time.Minute)
	proxy.Cut()
}

func TestWait_EndsOnASilentConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	s := open(t, Options{URL: "redis://" + proxy.Addr() + "?read_timeout=5s"})
	ended := make(chan error, 1)
	go func() {
		_, err := s.Shards()[0].Wait(context.WithoutCancel(t.Context()),
			store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Minute})
		ended <- err
	}()
	admin := client(t, server.Addr())
	require.Eventually(t, func() bool {
		info, err := admin.Info(t.Context(), "clients").Result()
		return err == nil && strings.Contains(info, "blocked_clients:1")
	}, time.Minute, 5*time.Millisecond)
	proxy.Stall()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, store.ErrUnavailable)
	case <-time.After(3 * time.Minute):
		require.Fail(t, "the silent connection was not closed")
	}
	insert(t, s, entry("a"))
	notified, err := s.Shards()[0].Wait(t.Context(), store.WaitOptions{
		Groups: []string{store.GroupPush}, Timeout: time.Minute,
	})
	require.NoError(t, err)
	require.Len(t, notified, 1)
}
