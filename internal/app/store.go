package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/sqlite"
)

// storeName is a parsed --store.
type storeName struct {
	file  string          // of SQLite; empty: Redis
	redis connect.Address // parsed from url
	url   string
}

// parseStore parses sqlite:FILE or a Redis URL. Errors never contain a password.
func parseStore(text string) (storeName, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case "sqlite":
		file := strings.TrimPrefix(rest, "//")
		if file == "" || strings.HasPrefix(file, ":") {
			return storeName{}, errors.New("sqlite requires a file, such as sqlite:ringback.db")
		}
		return storeName{file: file}, nil
	case "redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster":
		address, err := connect.ParseAddress(text)
		if err != nil {
			return storeName{}, err // it is the whole of it
		}
		return storeName{redis: address, url: text}, nil
	default:
		return storeName{},
			errors.New("must be sqlite:FILE, redis://…, rediss://…, unix://…, redis+sentinel://… or redis+cluster://…")
	}
}

// String returns the store's URL without its password.
func (n storeName) String() string {
	if n.file == "" {
		return n.redis.String()
	}
	return "sqlite:" + n.file
}

// open opens the store and returns its default policy: the retention of ended jobs depends on the engine.
func (n namedStore) open(ctx context.Context, o Options, log *slog.Logger) (store.Store, policy.Topic, error) {
	defaults := policy.Builtin()
	if n.file == "" {
		s, err := redis.Open(ctx, redis.Options{
			URL: n.url, Shards: o.Shards[n.name], Prefix: o.RedisPrefix, Wait: o.RedisWait,
			Limits: defaults.Limits(), Logger: log,
		})
		if err != nil {
			return nil, policy.Topic{}, fmt.Errorf("open the store %s: %w", n, err)
		}
		return s, defaults, nil
	}
	defaults = sqlite.Defaults(defaults)
	s, err := sqlite.Open(ctx, sqlite.Options{Path: n.file, Limits: defaults.Limits(), Logger: log})
	if err != nil {
		return nil, policy.Topic{}, fmt.Errorf("open the store %s: %w", n, err)
	}
	return s, defaults, nil
}
