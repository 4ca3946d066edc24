package redis

import (
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func TestConformanceOnMiniredis(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Engine {
		server := miniredis.RunT(t)
		var mu sync.Mutex
		now := time.Now().UTC().Truncate(time.Millisecond)
		server.SetTime(now)
		o := Options{URL: "redis://" + server.Addr(), Logger: quiet}
		s := open(t, o)
		return storetest.Engine{
			Store: s, Defaults: policy.Builtin(),
			Advance: func(d time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				now = now.Add(d)
				server.SetTime(now)
				server.FastForward(d)
			},
			Now: func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				return now
			},
			Reopen: func() store.Store {
				require.NoError(t, s.Close())
				s = open(t, o)
				return s
			},
		}
	})
}

func TestConformanceOnOneShard(t *testing.T) { conformance(t, 1) }

func TestConformanceOnSixteenShards(t *testing.T) { conformance(t, 16) }

// conformance holds the engine against the contract on a real server, every script's keys checked on the way.
func conformance(t *testing.T, shards int) {
	server := redistest.Start(t)
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	o := Options{URL: server.URL(), Shards: shards, Logger: quiet}
	storetest.Run(t, func(t *testing.T) storetest.Engine {
		require.NoError(t, admin.FlushAll(t.Context()).Err())
		s := open(t, o)
		watchKeys(t, s)
		return storetest.Engine{
			Store: s, Defaults: policy.Builtin(),
			Reopen: func() store.Store {
				require.NoError(t, s.Close())
				s = open(t, o)
				watchKeys(t, s)
				return s
			},
		}
	})
}
