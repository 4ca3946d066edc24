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

// Options are the options of Open.
type Options struct {
	// URL is parsed by connect.ParseAddress. Required.
	URL string
	// Shards is the number of shards, 1 to job.MaxShards. Existing data must have the same number. Zero: that of
	// existing data, else 1, on a cluster 16.
	Shards int
	// Wait is the durability that writes of the API wait for: registrations, replacements, cancellations, revivals,
	// settings and alarms. Zero: they do not wait.
	Wait connect.Wait
	// Limits are those of topics without a policy; unset fields take those of policy.Builtin().
	Limits policy.Limits
	// Prefix begins every key; empty: "rb". Up to 64 letters, digits, '.', '_' and '-'.
	Prefix string
	// Logger receives warnings and errors; nil: slog.Default().
	Logger *slog.Logger

	exists  bool                 // fails if there are no data yet
	elapsed func() time.Duration // a monotonic clock, for tests; nil: the real one
}

// prefixMost is the most bytes of a prefix: every key begins with it.
const prefixMost = 64

// CheckPrefix returns an error if a prefix of keys is invalid. Empty is valid: the default.
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

// check sets defaults and validates.
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
