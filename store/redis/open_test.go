package redis

import (
	"errors"
	"log/slog"
	"net"
	"strconv"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

func client(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestOpen_RefusesAServerThatEvicts(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	_, err := Open(t.Context(), Options{URL: server.URL(), Logger: quiet})
	require.ErrorContains(t, err, "maxmemory-policy is allkeys-lru, which would evict jobs: set it to noeviction")
}

func TestOpen_WarnsWhenNothingPersists(t *testing.T) {
	var log testkit.Log
	logger := slog.New(slog.NewTextHandler(&log, nil))
	open(t, Options{URL: redistest.Start(t).URL(), Logger: logger})
	require.Contains(t, log.String(), "persists nothing")

	log.Reset()
	open(t, Options{URL: redistest.Start(t, "--appendonly", "yes").URL(), Logger: logger})
	require.Empty(t, log.String())
}

func TestOpen_KeepsTheNumberOfShards(t *testing.T) {
	url := "redis://" + miniredis.RunT(t).Addr()
	require.Len(t, open(t, Options{URL: url, Shards: 4}).Shards(), 4)
	require.Len(t, open(t, Options{URL: url}).Shards(), 4)
	_, err := Open(t.Context(), Options{URL: url, Shards: 8})
	require.ErrorContains(t, err, "the data have 4 shards, not 8")
	require.Len(t, open(t, Options{URL: url, Prefix: "other"}).Shards(), 1)
}

func TestOpen_RefusesAnotherSchema(t *testing.T) {
	server := miniredis.RunT(t)
	for range 2 {
		open(t, Options{URL: "redis://" + server.Addr()})
		require.Equal(t, strconv.Itoa(layout.Version), server.HGet("rb:meta", "version"))
	}
	for _, version := range []string{"x", "1", strconv.Itoa(layout.Version + 1)} {
		server.HSet("rb:meta", "version", version)
		_, err := Open(t.Context(), Options{URL: "redis://" + server.Addr()})
		require.ErrorContains(t, err, "schema version "+version)
		require.Equal(t, version, server.HGet("rb:meta", "version"))
	}
}

func TestOpen_RefusesInvalidOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no URL":            {},
		"another scheme":    {URL: "http://localhost"},
		"too many shards":   {URL: "redis://localhost", Shards: 257},
		"a brace in prefix": {URL: "redis://localhost", Prefix: "{a}"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), o)
			require.Error(t, err)
			require.NotErrorIs(t, err, store.ErrUnavailable)
		})
	}
}

func TestOpen_ShowsNoPassword(t *testing.T) {
	for _, url := range []string{
		"redis://:s3cret@127.0.0.1:1", "redis://:s3cret@127.0.0.1:99999999/x", "redis://:s3cret%zz@h",
		"redis://user:s3cret/abc@127.0.0.1", "redis://user:s3cret#abc@127.0.0.1", "redis://user:s3cret?abc@127.0.0.1",
		"redis://user:1/s3cret@127.0.0.1", "redis://user:1#s3cret@127.0.0.1",
		"redis://user:1?s3cret@127.0.0.1", "s3cret://h",
	} {
		_, err := Open(t.Context(), Options{URL: url})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "s3cret")
		if !errors.Is(err, store.ErrUnavailable) {
			require.ErrorContains(t, err, "redis://[user:password@]host[:port][/database]")
			require.ErrorContains(t, err, "percent-encode / # ? @ %")
		}
	}
}

func TestOpen_SuggestsTLSForASilentServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, silent.Close()) })
	for name, addr := range map[string]string{"silent": silent.Addr().String(), "redis": redistest.Start(t).Addr()} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), Options{URL: "rediss://" + addr + "?dial_timeout=300ms", Logger: quiet})
			require.ErrorIs(t, err, store.ErrUnavailable)
			require.ErrorContains(t, err, "no answer within 300ms: does it speak TLS?")
		})
	}
	answering, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		for {
			conn, err := answering.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("-ERR I speak no TLS\r\n")) // the client may be gone
		}
	}()
	t.Cleanup(func() { require.NoError(t, answering.Close()) })
	_, err = Open(t.Context(), Options{URL: "rediss://" + answering.Addr().String(), Logger: quiet})
	require.ErrorContains(t, err, "does not speak TLS")
}

func TestOpen_RefusesAClusterNodeAsASingleServer(t *testing.T) {
	server := redistest.Start(t, "--cluster-enabled", "yes")
	var log testkit.Log
	_, err := Open(t.Context(), Options{URL: server.URL(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.ErrorContains(t, err, "use redis+cluster://")
	require.NotErrorIs(t, err, store.ErrUnavailable)
	require.Empty(t, log.String(), "the refusal is the only line")
}

func TestOpen_DoesNotWarnWhenItRefuses(t *testing.T) {
	server := redistest.Start(t)
	open(t, Options{URL: server.URL(), Shards: 2})
	var log testkit.Log
	_, err := Open(t.Context(), Options{URL: server.URL(), Shards: 3, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.ErrorContains(t, err, "the data have 2 shards, not 3")
	require.Empty(t, log.String())
}

func TestOpen_AcceptsAUnixSocket(t *testing.T) {
	socket := t.TempDir() + "/r.sock"
	redistest.Start(t, "--unixsocket", socket)
	s := open(t, Options{URL: "unix://" + socket})
	require.NoError(t, s.Ping(t.Context()))
}
