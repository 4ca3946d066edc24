package redis

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store/redis/connect"
)

// Options says where the data are and how they are laid out.
type Options struct {
	// URL is parsed by connect.ParseAddress. Required.
	URL string
	// Shards is the number of shards, 1 to job.MaxShards; zero takes what the data say, else 1, on a cluster 16. Another
	// number than the data say is an error.
	Shards int
	// Wait is for what the answer to a registration, edit, cancellation, revival, policy, alarm or a lane's settings waits,
	// beyond Redis having taken it; zero: nothing.
	Wait connect.Wait
	// Limits are those of topics without a policy; unset fields take those of policy.Builtin().
	Limits policy.Limits
	// Prefix begins every key; empty: "rb". Up to 64 letters, digits, '.', '_' and '-'.
	Prefix string
	// Logger hears warnings about the server's settings; nil: slog.Default().
	Logger *slog.Logger

	elapsed func() time.Duration // the process's monotonic clock; nil: the real one. Tests that set Redis's clock set it.
}

// prefixMost is the most bytes of a prefix: every key begins with it.
const prefixMost = 64

// CheckPrefix says what is wrong with a prefix of keys; empty is the default.
func CheckPrefix(prefix string) error {
	if len(prefix) > prefixMost {
		return fmt.Errorf("is longer than %d bytes", prefixMost)
	}
	for _, c := range []byte(prefix) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return fmt.Errorf("%q may hold letters, digits, '.', '_' and '-' only", prefix)
		}
	}
	return nil
}

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
	if err := CheckPrefix(o.Prefix); err != nil {
		return fmt.Errorf("redis: prefix: %w", err)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.elapsed == nil {
		start := time.Now()
		o.elapsed = func() time.Duration { return time.Since(start) }
	}
	o.Limits = o.Limits.Over(policy.Builtin().Limits())
	return nil
}
