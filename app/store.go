package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis"
	"github.com/ringback/ringback/store/sqlite"
)

// A storeName is a --store, read.
type storeName struct {
	file string   // of SQLite; empty: Redis
	url  *url.URL // of Redis
}

// parseStore reads sqlite:FILE, redis://… or rediss://…. Errors never show a password.
func parseStore(text string) (storeName, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case "sqlite":
		file := strings.TrimPrefix(rest, "//")
		if file == "" || strings.HasPrefix(file, ":") {
			return storeName{}, errors.New("sqlite needs a file, such as sqlite:ringback.db")
		}
		return storeName{file: file}, nil
	case "redis", "rediss":
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return storeName{}, fmt.Errorf("not an address such as %s://localhost:6379/0", kind)
		}
		return storeName{url: u}, nil
	default:
		return storeName{}, errors.New("none of sqlite:FILE, redis://… and rediss://…")
	}
}

// String names the store without its password.
func (n storeName) String() string {
	if n.url != nil {
		return n.url.Redacted()
	}
	return "sqlite:" + n.file
}

// open opens the store, and gives the policy under every topic's: what is kept of ended jobs depends on the engine.
func (n storeName) open(ctx context.Context, o Options) (store.Store, policy.Topic, error) {
	defaults := policy.Builtin()
	if n.url != nil {
		s, err := redis.Open(ctx, redis.Options{URL: n.url.String(), Shards: o.Shards, Defaults: defaults, Logger: o.Logger})
		if err != nil {
			return nil, policy.Topic{}, fmt.Errorf("open the store %s: %w", n, err)
		}
		return s, defaults, nil
	}
	defaults = sqlite.Defaults(defaults)
	s, err := sqlite.Open(ctx, sqlite.Options{Path: n.file, Defaults: defaults, Logger: o.Logger})
	if err != nil {
		return nil, policy.Topic{}, fmt.Errorf("open the store %s: %w", n, err)
	}
	return s, defaults, nil
}
