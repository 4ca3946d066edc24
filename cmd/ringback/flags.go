package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ringback/ringback/app"
)

// byteSize is a number of bytes: "262144", "256KiB", "1MiB".
type byteSize int64

// UnmarshalText reads a size as a flag gives it.
func (b *byteSize) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for _, u := range []struct {
		name  string
		bytes int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}} {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = n, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is not a size such as 262144, 256KiB or 1MiB", text)
	}
	*b = byteSize(n * unit)
	return nil
}

// redisWait is for what answers to changes wait: "replicas=1,timeout=100ms", "fsync".
type redisWait struct{ app.RedisWait }

// UnmarshalText reads a wait as a flag gives it.
func (w *redisWait) UnmarshalText(text []byte) error {
	parsed, err := app.ParseRedisWait(string(text))
	if err != nil {
		return err
	}
	w.RedisWait = parsed
	return nil
}

// roles are what a process does: "api", "worker", or "api,worker".
type roles []app.Role

// UnmarshalText reads roles as a flag gives them.
func (r *roles) UnmarshalText(text []byte) error {
	parsed, err := app.ParseRoles(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}
