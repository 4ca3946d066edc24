package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
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
	var first greeting
	s := &Store{
		runner:  &runner{client: connect(first.note), defaults: termsText(0, o.Defaults)},
		connect: connect, prefix: o.Prefix, policies: o.Defaults, log: o.Logger,
	}
	if err := s.open(ctx, o.Shards, first); err != nil {
		return nil, errors.Join(err, s.client.Close())
	}
	return s, nil
}

// silence stops go-redis from writing to standard error: what it writes there it also returns, and callers log that.
var silence = sync.OnceFunc(func() { redis.SetLogger(mute{}) })

type mute struct{}

func (mute) Printf(context.Context, string, ...any) {}

// A greeting is what the first call to a server needs to know of the client's options.
type greeting struct {
	limit time.Duration
	tls   bool
}

func (g *greeting) note(o *redis.Options) { g.limit, g.tls = o.DialTimeout, o.TLSConfig != nil }

// greet asks the server whether it is there, for as long as a connection may take. One that was to speak TLS and does
// not is silent, or answers with something else.
func (g greeting) greet(ctx context.Context, client redis.UniversalClient) error {
	ctx, cancel := within(ctx, g.limit)
	defer cancel()
	err := client.Ping(ctx).Err()
	if err == nil {
		return nil
	}
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	late := errors.Is(context.Cause(ctx), errSlow) || isTimeout(err)
	switch {
	case g.tls && plain:
		return &store.UnavailableError{Reason: "redis: the server does not speak TLS: use redis:// or another port"}
	case g.tls && late && !errors.Is(context.Cause(ctx), context.Canceled):
		return &store.UnavailableError{Reason: fmt.Sprintf("redis: no answer within %s: does it speak TLS?", g.limit)}
	}
	return fault(ctx, err)
}

func (s *Store) open(ctx context.Context, shards int, first greeting) error {
	if err := first.greet(ctx, s.client); err != nil {
		return fmt.Errorf("open redis: %w", err)
	}
	if err := checkServer(ctx, s.client); err != nil {
		return err
	}
	forgetful, err := forgets(ctx, s.client)
	if err != nil {
		return err
	}
	n, err := s.layout(ctx, shards)
	if err != nil {
		return err
	}
	for i := range n {
		s.shards = append(s.shards, newPart(s.prefix, i))
	}
	if forgetful { // last, so that a refusal is the only line
		s.log.WarnContext(ctx, "redis keeps nothing on disk: jobs are lost when it ends; set appendonly yes")
	}
	return nil
}

// layout reads, or sets once, the schema's version and the number of shards. It writes only what is missing: data that
// are there can be opened while memory is full.
func (s *Store) layout(ctx context.Context, shards int) (int, error) {
	key := s.prefix + ":meta"
	first := max(shards, 1)
	found, err := s.client.HMGet(ctx, key, "version", "shards").Result()
	if err == nil && (found[0] == nil || found[1] == nil) {
		pipe := s.client.Pipeline()
		pipe.HSetNX(ctx, key, "version", schemaVersion)
		pipe.HSetNX(ctx, key, "shards", first)
		read := pipe.HMGet(ctx, key, "version", "shards")
		_, err = pipe.Exec(ctx)
		found = read.Val()
	}
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", key, fault(ctx, err))
	}
	values := strs(found)
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

// checkServer refuses a server that would evict jobs, and a node of a cluster: the client that calls are made with
// follows no redirections. What a server does not tell (hosted ones forbid CONFIG) is not held against it.
func checkServer(ctx context.Context, client redis.UniversalClient) error {
	info, err := client.Info(ctx, "cluster").Result()
	if err != nil && !untold(err) {
		return fmt.Errorf("ask redis whether it is a cluster: %w", fault(ctx, err))
	}
	if strings.Contains(info, "cluster_enabled:1") {
		return errors.New("redis: Redis Cluster is not supported yet: use a server with cluster-enabled no")
	}
	evicts, err := config(ctx, client, "maxmemory-policy")
	if err != nil {
		return err
	}
	if evicts != "" && evicts != "noeviction" {
		return fmt.Errorf("redis: maxmemory-policy is %s, which would evict jobs: set it to noeviction", evicts)
	}
	return nil
}

// forgets tells whether a server keeps nothing on disk, as far as it tells.
func forgets(ctx context.Context, client redis.UniversalClient) (bool, error) {
	appends, err := config(ctx, client, "appendonly")
	if err != nil {
		return false, err
	}
	saves, err := config(ctx, client, "save")
	if err != nil {
		return false, err
	}
	return appends == "no" && saves == "", nil
}

// config reads one setting, empty where the server does not tell.
func config(ctx context.Context, client redis.UniversalClient, name string) (string, error) {
	found, err := client.ConfigGet(ctx, name).Result()
	if err == nil {
		return found[name], nil
	}
	if untold(err) {
		return "", nil
	}
	return "", fmt.Errorf("read setting %s: %w", strconv.Quote(name), fault(ctx, err))
}

// untold tells an answer that refuses the question from a fault.
func untold(err error) bool {
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
