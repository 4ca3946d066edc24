package main

import (
	"fmt"
	"math"
	"net/netip"
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

// network is a range of addresses: "10.1.0.0/16", or one address.
type network struct{ netip.Prefix }

// UnmarshalText reads a network as a flag gives it.
func (n *network) UnmarshalText(text []byte) error {
	if addr, err := netip.ParseAddr(string(text)); err == nil {
		n.Prefix = netip.PrefixFrom(addr, addr.BitLen())
		return nil
	}
	prefix, err := netip.ParsePrefix(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a network such as 10.1.0.0/16, or an address", text)
	}
	n.Prefix = prefix.Masked()
	return nil
}

// prefixes gives the networks as what they are.
func prefixes(networks []network) []netip.Prefix {
	all := make([]netip.Prefix, len(networks))
	for i, n := range networks {
		all[i] = n.Prefix
	}
	return all
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
