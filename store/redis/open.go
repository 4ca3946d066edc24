package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Open connects to Redis, checks its settings, and opens or lays out the data under the prefix.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	address, err := ParseAddress(o.URL)
	if err != nil {
		return nil, err
	}
	connect := newConnector(address, o.Wait.Timeout)
	s := &Store{
		runner:  &runner{client: connect.calls(), wait: o.Wait, log: o.Logger, defaults: limitsText(0, o.Defaults)},
		connect: connect, prefix: o.Prefix, policies: o.Defaults,
		lanesAtOnce: repairLanes, endedAtOnce: repairLists, me: string(store.NewToken()), elapsed: o.elapsed,
	}
	if err := s.open(ctx, o.Shards); err != nil {
		return nil, errors.Join(err, s.client.Close())
	}
	return s, nil
}

// go-redis must not write to standard error: what it writes there it also returns, and callers log that. Its logger is
// a variable of the process that its clients read unguarded, so it is set before there are any.
func init() { redis.SetLogger(silentLogger{}) }

type silentLogger struct{}

func (silentLogger) Printf(context.Context, string, ...any) {}

func (s *Store) open(ctx context.Context, shards int) error {
	if err := s.checkConnection(ctx); err != nil {
		return fmt.Errorf("open redis: %w", err)
	}
	var forgetful atomic.Bool
	err := servers(ctx, s.client, func(ctx context.Context, server *redis.Client) error {
		if err := s.connect.checkForm(ctx, server); err != nil {
			return err
		}
		if err := checkEviction(ctx, server); err != nil {
			return err
		}
		forgets, err := persistsNothing(ctx, server)
		if forgets {
			forgetful.Store(true)
		}
		return err
	})
	if err != nil {
		return err
	}
	n, err := s.layout(ctx, shards)
	if err != nil {
		return err
	}
	for i, tag := range tags(s.prefix, n) {
		s.shards = append(s.shards, newShard(s, newKeys(tag), i))
	}
	s.health.shards, s.health.filled = n, make(map[int]bool)
	if err := s.checkWait(ctx); err != nil {
		return err
	}
	if forgetful.Load() { // last, so that a refusal is the only line
		s.log.WarnContext(ctx, "redis persists nothing, jobs are lost when it stops; set appendonly yes")
	}
	return nil
}

// checkConnection asks Redis whether it is there, for as long as a connection may take. One that was to speak TLS and does not is
// silent, or answers with something else.
func (s *Store) checkConnection(ctx context.Context) error {
	limit := s.connect.limit()
	ctx, cancel := within(ctx, limit)
	defer cancel()
	err := s.client.Ping(ctx).Err()
	if err == nil {
		return nil
	}
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	late := errors.Is(context.Cause(ctx), errSlow) || isTimeout(err)
	secure := s.connect.options.TLSConfig != nil
	text := err.Error()
	switch {
	case secure && plain:
		return &store.UnavailableError{Reason: "redis: the server does not speak TLS: use redis:// or another port"}
	case secure && late && !errors.Is(context.Cause(ctx), context.Canceled):
		return &store.UnavailableError{Reason: fmt.Sprintf("redis: no answer within %s: does it speak TLS?", limit)}
	case s.connect.form == cluster && strings.Contains(text, "cluster support disabled"):
		return errors.New("redis: the server is not a node of a cluster: use redis://")
	case s.connect.form == sentinel && strings.Contains(strings.ToLower(text), "unknown command"):
		return errors.New("redis: the server is not a sentinel: name sentinels, or use redis://")
	case s.connect.form == sentinel && strings.Contains(text, "redis: nil"):
		return fmt.Errorf("redis: the sentinels know no primary by the name %q: see master_name", s.connect.master)
	}
	return fault(ctx, err)
}

// checkForm refuses a server that is set up in another form than the address says: a client for one server follows no
// redirections, and a sentinel keeps nothing.
func (c *connector) checkForm(ctx context.Context, server *redis.Client) error {
	info, err := server.Info(ctx, "server").Result()
	switch {
	case isNotPermitted(err) || c.form == cluster:
		return nil
	case err != nil:
		return fmt.Errorf("ask redis how it is set up: %w", fault(ctx, err))
	case strings.Contains(info, "redis_mode:sentinel"):
		return errors.New("redis: the server is a sentinel: use redis+sentinel://…?master_name=NAME")
	case strings.Contains(info, "redis_mode:cluster"):
		return errors.New("redis: the server is a node of a cluster: use redis+cluster://")
	}
	return nil
}

// layout checks, or sets once, the layout's version, and returns the number of shards. It writes only missing fields, so
// that existing data can be opened while memory is full.
func (s *Store) layout(ctx context.Context, shards int) (n int, err error) {
	key := s.metaKey()
	first := max(shards, 1)
	if s.connect.form == cluster {
		first = cmp.Or(shards, clusterShards)
	}
	found, err := s.client.HMGet(ctx, key, "version", "shards").Result()
	if err == nil && (found[0] == nil || found[1] == nil) {
		pipe := s.client.Pipeline()
		pipe.HSetNX(ctx, key, "version", layoutVersion)
		pipe.HSetNX(ctx, key, "shards", first)
		read := pipe.HMGet(ctx, key, "version", "shards")
		_, err = pipe.Exec(ctx)
		found = read.Val()
	}
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", key, fault(ctx, err))
	}
	values := strs(found)
	version, n := num(values[0]), int(num(values[1]))
	switch {
	case version != layoutVersion:
		return 0, fmt.Errorf("redis: the data have schema version %s, this program requires version %d", values[0], layoutVersion)
	case n < 1 || n > job.MaxShards:
		return 0, fmt.Errorf("redis: %s has %q shards, want 1 to %d", key, values[1], job.MaxShards)
	case shards != 0 && shards != n:
		return 0, fmt.Errorf("redis: the data have %d shards, not %d: the number is fixed when they are laid out", n, shards)
	}
	return n, nil
}

// checkEviction refuses a server that would evict jobs. What a server does not tell (hosted ones forbid CONFIG) is not
// held against it.
func checkEviction(ctx context.Context, server *redis.Client) error {
	evicts, err := config(ctx, server, "maxmemory-policy")
	if err != nil {
		return err
	}
	if evicts != "" && evicts != "noeviction" {
		return fmt.Errorf("redis: maxmemory-policy is %s, which would evict jobs: set it to noeviction", evicts)
	}
	return nil
}

// persistsNothing tells whether a server keeps nothing on disk, as far as it tells.
func persistsNothing(ctx context.Context, server *redis.Client) (bool, error) {
	appends, err := config(ctx, server, "appendonly")
	if err != nil {
		return false, err
	}
	saves, err := config(ctx, server, "save")
	if err != nil {
		return false, err
	}
	return appends == "no" && saves == "", nil
}

// config reads one setting, empty where the server does not tell.
func config(ctx context.Context, server *redis.Client, name string) (string, error) {
	found, err := server.ConfigGet(ctx, name).Result()
	if err == nil {
		return found[name], nil
	}
	if isNotPermitted(err) {
		return "", nil
	}
	return "", fmt.Errorf("read setting %s: %w", strconv.Quote(name), fault(ctx, err))
}

// isNotPermitted tells an answer that refuses the question from a fault.
func isNotPermitted(err error) bool {
	answer, ok := errors.AsType[redis.Error](err)
	if !ok || isClientSide(err) {
		return false
	}
	text := strings.ToLower(answer.Error())
	for _, refusal := range []string{"unknown command", "unknown subcommand", "noperm", "disabled", "not supported", "not allowed"} {
		if strings.Contains(text, refusal) {
			return true
		}
	}
	return false
}
