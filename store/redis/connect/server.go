package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// CheckServers refuses servers of another kind than the address says, and those that may evict keys. persistent is
// false when one keeps nothing on disk. Settings that a server does not disclose (hosted ones forbid CONFIG) pass.
func (c *Client) CheckServers(ctx context.Context) (persistent bool, err error) {
	var volatile atomic.Bool
	err = c.EachPrimary(ctx, func(ctx context.Context, server *redis.Client) error {
		if err := c.checkKind(ctx, server); err != nil {
			return err
		}
		_, policy, err := readInfo(ctx, server)
		if err != nil {
			return err
		}
		if Evicts(policy) {
			return fmt.Errorf("redis: maxmemory-policy is %s, which would evict jobs: set it to noeviction", policy)
		}
		on, err := ReadSettings(ctx, server, "appendonly", "save")
		if err == nil && !IsPersistent(on) {
			volatile.Store(true)
		}
		return err
	})
	return !volatile.Load(), err
}

// checkKind refuses cluster nodes and sentinels for a single server: its client follows no redirects, and a sentinel
// stores nothing.
func (c *Client) checkKind(ctx context.Context, server *redis.Client) error {
	info, err := server.Info(ctx, "server").Result()
	switch {
	case IsNotPermitted(err) || c.address.form == cluster:
		return nil
	case err != nil:
		return fmt.Errorf("read the mode of redis: %w", MapError(ctx, err))
	case strings.Contains(info, "redis_mode:sentinel"):
		return errors.New("redis: the server is a sentinel: use redis+sentinel://…?master_name=NAME")
	case strings.Contains(info, "redis_mode:cluster"):
		return errors.New("redis: the server is a node of a cluster: use redis+cluster://")
	}
	return nil
}

// Evicts reports whether a maxmemory-policy may evict jobs; an unknown one does not.
func Evicts(policy string) bool { return policy != "" && policy != "noeviction" }

// IsPersistent reports whether a server with these settings writes anything to disk; true if it does not disclose them.
func IsPersistent(settings map[string]string) bool {
	appends, known := settings["appendonly"]
	saves, knows := settings["save"]
	return !known || !knows || appends != "no" || saves != ""
}

// ReadSettings reads configuration parameters, one by one: before version 7 Redis takes one at a time. Those that the
// server does not disclose are missing.
func ReadSettings(ctx context.Context, server *redis.Client, names ...string) (map[string]string, error) {
	pipe := server.Pipeline()
	reads := make([]*redis.MapStringStringCmd, len(names))
	for i, name := range names {
		reads[i] = pipe.ConfigGet(ctx, name)
	}
	_, _ = pipe.Exec(ctx) // each command has its error
	settings := make(map[string]string)
	for i, name := range names {
		found, err := reads[i].Result()
		switch value, has := found[name]; {
		case err == nil && has:
			settings[name] = value
		case err != nil && !IsNotPermitted(err):
			return settings, fmt.Errorf("read setting %s: %w", strconv.Quote(name), MapError(ctx, err))
		}
	}
	return settings, nil
}

// Servers describes the primaries.
type Servers struct {
	// RunIDs has each server's run and replication ids, by its address. Without a cluster the address is empty.
	RunIDs map[string]string
	// EvictionPolicy is the maxmemory-policy of a server that may evict keys; empty: none may.
	EvictionPolicy string
}

// Servers asks every primary for its ids and eviction policy. RunIDs has those of the servers that answered, also when
// others failed.
func (c *Client) Servers(ctx context.Context) (Servers, error) {
	var mu sync.Mutex
	found := Servers{RunIDs: make(map[string]string)}
	err := c.EachPrimary(ctx, func(ctx context.Context, server *redis.Client) error {
		id, policy, err := readInfo(ctx, server)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		found.RunIDs[c.addressOf(server)] = id
		if Evicts(policy) {
			found.EvictionPolicy = policy
		}
		return nil
	})
	return found, err
}

// NodeAddress returns the key in Servers.RunIDs of the server that serves a key.
func (c *Client) NodeAddress(ctx context.Context, key string) (string, error) {
	server, err := c.Node(ctx, key)
	if err != nil {
		return "", err
	}
	return c.addressOf(server), nil
}

func (c *Client) addressOf(server *redis.Client) string {
	if !c.IsCluster() {
		return "" // there is one at a time
	}
	return server.Options().Addr
}

// RunID returns a server's run id and replication id, or "unknown". A restart changes both, a failover or a full
// resynchronization one of them.
func RunID(ctx context.Context, server *redis.Client) (string, error) {
	id, _, err := readInfo(ctx, server)
	return id, err
}

// readInfo reads what RunID returns, and a server's maxmemory-policy, which is empty if the server does not disclose
// it.
func readInfo(ctx context.Context, server *redis.Client) (runID, evictionPolicy string, err error) {
	info, err := server.Info(ctx).Result()
	if err != nil && !IsNotPermitted(err) {
		return "", "", fmt.Errorf("read the server's state: %w", MapError(ctx, err))
	}
	fields := ParseInfo(info)
	return cmp.Or(fields["run_id"]+fields["master_replid"], "unknown"), fields["maxmemory_policy"], nil
}

// ParseInfo returns the fields of an answer of INFO.
func ParseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}
