package redis

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/store"
)

func client(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestOpenRefusesAServerThatEvicts(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	_, err := Open(t.Context(), Options{URL: server.URL(), Logger: quiet})
	require.ErrorContains(t, err, "maxmemory-policy is allkeys-lru, which would evict jobs: set it to noeviction")
}

func TestOpenWarnsWhenNothingPersists(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	open(t, Options{URL: redistest.Start(t).URL(), Logger: logger})
	require.Contains(t, log.String(), "keeps nothing on disk")

	log.Reset()
	open(t, Options{URL: redistest.Start(t, "--appendonly", "yes").URL(), Logger: logger})
	require.Empty(t, log.String())
}

func TestOpenHoldsToTheNumberOfShards(t *testing.T) {
	url := "redis://" + miniredis.RunT(t).Addr()
	require.Equal(t, 4, open(t, Options{URL: url, Shards: 4}).Shards())
	require.Equal(t, 4, open(t, Options{URL: url}).Shards())
	_, err := Open(t.Context(), Options{URL: url, Shards: 8})
	require.ErrorContains(t, err, "the data have 4 shards, not 8")
	require.Equal(t, 1, open(t, Options{URL: url, Prefix: "other"}).Shards())
}

func TestOpenRefusesANewerSchema(t *testing.T) {
	server := miniredis.RunT(t)
	server.HSet("rb:meta", "version", "2", "shards", "1")
	_, err := Open(t.Context(), Options{URL: "redis://" + server.Addr()})
	require.ErrorContains(t, err, "schema version 2")
}

func TestOpenRefusesWhatCannotBe(t *testing.T) {
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

func TestOpenShowsNoPassword(t *testing.T) {
	for _, url := range []string{"redis://:s3cret@127.0.0.1:1", "redis://:s3cret@127.0.0.1:99999999/x", "redis://:s3cret%zz@h"} {
		_, err := Open(t.Context(), Options{URL: url})
		require.Error(t, err)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

func TestASocketWillDo(t *testing.T) {
	socket := t.TempDir() + "/r.sock"
	redistest.Start(t, "--unixsocket", socket)
	s := open(t, Options{URL: "unix://" + socket})
	require.NoError(t, s.Ping(t.Context()))
}
