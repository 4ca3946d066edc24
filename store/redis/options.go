package redis

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Options says where the data are and how they are laid out.
type Options struct {
	// URL is redis://, rediss:// or unix://, with user, password, database and options as go-redis's ParseURL reads
	// them. Required.
	URL string
	// Shards is the number of shards, 1 to job.MaxShards; zero takes what the data say, else 1. Another number than
	// the data say is an error.
	Shards int
	// Defaults is the complete policy under every topic's; the zero value takes policy.Builtin().
	Defaults policy.Topic
	// Prefix begins every key; empty: "rb". Letters, digits, '.', '_' and '-'.
	Prefix string
	// Logger hears warnings about the server's settings; nil: slog.Default().
	Logger *slog.Logger
}

// The client's own limits. The server may take its time for a batch, but a call must end.
const (
	dialTimeout = 5 * time.Second
	readTimeout = 5 * time.Second
	poolTimeout = 5 * time.Second
	// resends is how often go-redis itself sends a command again whose reply was lost: the token makes that harmless.
	resends = 2
)

// errURL stands for whatever a URL's parser says: its text may hold a part of a password that was not encoded, and a
// '#' ends the URL before the host, so that the password would be taken for a port.
var errURL = errors.New("redis: the URL cannot be read: it must be redis://[user:password@]host[:port][/database], rediss:// " +
	"for TLS, or unix://[user:password@]/path, with known options after '?'; percent-encode / # ? @ % in a user or password")

// check fills defaults in and reports what is wrong.
func (o *Options) check() error {
	if o.URL == "" {
		return errors.New("redis: no URL")
	}
	if o.Shards < 0 || o.Shards > job.MaxShards {
		return fmt.Errorf("redis: shards must be 1 to %d, not %d", job.MaxShards, o.Shards)
	}
	if o.Prefix == "" {
		o.Prefix = "rb"
	}
	for _, c := range []byte(o.Prefix) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return fmt.Errorf("redis: prefix %q may hold letters, digits, '.', '_' and '-' only", o.Prefix)
		}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Defaults = o.Defaults.Over(policy.Builtin())
	return nil
}

// connect makes a function that opens clients: one for calls, and one for each blocking connection. They differ by
// what change does to their options. The errors say nothing of the URL.
func (o *Options) connect() (func(change func(*redis.Options)) redis.UniversalClient, error) {
	parsed, err := redis.ParseURL(o.URL)
	if err != nil || strings.Contains(o.URL, "#") {
		return nil, errURL
	}
	parsed.ContextTimeoutEnabled = true
	parsed.DialerRetries = 1
	parsed.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if parsed.MaxRetries == 0 {
		parsed.MaxRetries = resends
	}
	if parsed.DialTimeout == 0 {
		parsed.DialTimeout = dialTimeout
	}
	if parsed.ReadTimeout == 0 {
		parsed.ReadTimeout = readTimeout
	}
	if parsed.PoolTimeout == 0 {
		parsed.PoolTimeout = poolTimeout
	}
	return func(change func(*redis.Options)) redis.UniversalClient {
		opts := *parsed
		if change != nil {
			change(&opts)
		}
		return redis.NewClient(&opts)
	}, nil
}
