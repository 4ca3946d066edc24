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

// UnmarshalText parses a flag's size.
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
		return fmt.Errorf("%q is not a size: use bytes, or a unit as in 256KiB or 1MiB", text)
	}
	*b = byteSize(n * unit)
	return nil
}

// redisWait is the flag of app.RedisWait: "replicas=1,timeout=100ms", "fsync".
type redisWait struct{ app.RedisWait }

// UnmarshalText parses the flag.
func (w *redisWait) UnmarshalText(text []byte) error {
	parsed, err := app.ParseRedisWait(string(text))
	if err != nil {
		return err
	}
	w.RedisWait = parsed
	return nil
}

// roles is the flag of app.Options.Roles: "api", "worker", or "api,worker".
type roles []app.Role

// UnmarshalText parses the flag.
func (r *roles) UnmarshalText(text []byte) error {
	parsed, err := app.ParseRoles(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}
