package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
)

// schemaVersion is the layout of the data. A process refuses data of a newer one.
const schemaVersion = 1

// Open connects to Redis, checks its settings, and opens or lays out the data under the prefix.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	silence()
	connect, err := o.connect()
	if err != nil {
		return nil, err
	}
	s := &Store{
		runner:  &runner{client: connect(nil), defaults: termsText(0, o.Defaults)},
		connect: connect, prefix: o.Prefix, policies: o.Defaults, log: o.Logger,
	}
	if err := s.open(ctx, o.Shards); err != nil {
		return nil, errors.Join(err, s.client.Close())
	}
	return s, nil
}

// silence stops go-redis from writing to standard error: what it writes there it also returns, and callers log that.
var silence = sync.OnceFunc(func() { redis.SetLogger(mute{}) })

type mute struct{}

func (mute) Printf(context.Context, string, ...any) {}

func (s *Store) open(ctx context.Context, shards int) error {
	if err := s.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("open redis: %w", fault(err))
	}
	if err := checkServer(ctx, s.client, s.log); err != nil {
		return err
	}
	n, err := s.layout(ctx, shards)
	if err != nil {
		return err
	}
	for i := range n {
		s.shards = append(s.shards, newPart(s.prefix, i))
	}
	return nil
}

// layout reads, or sets once, the schema's version and the number of shards.
func (s *Store) layout(ctx context.Context, shards int) (int, error) {
	key := s.prefix + ":meta"
	first := max(shards, 1)
	pipe := s.client.Pipeline()
	pipe.HSetNX(ctx, key, "version", schemaVersion)
	pipe.HSetNX(ctx, key, "shards", first)
	read := pipe.HMGet(ctx, key, "version", "shards")
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, fmt.Errorf("read %s: %w", key, fault(err))
	}
	values := strs(read.Val())
	version, stored := num(values[0]), int(num(values[1]))
	switch {
	case version > schemaVersion:
		return 0, fmt.Errorf("redis: the data have schema version %d, this program knows %d: use a newer one", version, schemaVersion)
	case version < 1 || stored < 1 || stored > job.MaxShards:
		return 0, fmt.Errorf("redis: %s holds version %q and %q shards, which cannot be", key, values[0], values[1])
	case shards != 0 && shards != stored:
		return 0, fmt.Errorf("redis: the data have %d shards, not %d: the number is fixed when they are laid out", stored, shards)
	}
	return stored, nil
}

// checkServer refuses a server that would evict jobs, and warns about one that forgets them. What a server does not
// tell (hosted ones forbid CONFIG) is not held against it.
func checkServer(ctx context.Context, client redis.UniversalClient, log *slog.Logger) error {
	evicts, err := config(ctx, client, "maxmemory-policy")
	if err != nil {
		return err
	}
	if evicts != "" && evicts != "noeviction" {
		return fmt.Errorf("redis: maxmemory-policy is %s, which would evict jobs: set it to noeviction", evicts)
	}
	appends, err := config(ctx, client, "appendonly")
	if err != nil {
		return err
	}
	saves, err := config(ctx, client, "save")
	if err != nil {
		return err
	}
	if appends == "no" && saves == "" {
		log.WarnContext(ctx, "redis keeps nothing on disk: jobs are lost when it ends; set appendonly yes")
	}
	return nil
}

// config reads one setting, empty where the server does not tell.
func config(ctx context.Context, client redis.UniversalClient, name string) (string, error) {
	found, err := client.ConfigGet(ctx, name).Result()
	if err == nil {
		return found[name], nil
	}
	if answer, ok := errors.AsType[redis.Error](err); ok && !isClientSide(err) {
		text := strings.ToLower(answer.Error())
		for _, refusal := range []string{"unknown command", "unknown subcommand", "noperm", "disabled", "not supported", "not allowed"} {
			if strings.Contains(text, refusal) {
				return "", nil
			}
		}
	}
	return "", fmt.Errorf("read setting %s: %w", strconv.Quote(name), fault(err))
}
