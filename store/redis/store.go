package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/counts"
	"github.com/ringback/ringback/store/redis/health"
	"github.com/ringback/ringback/store/redis/jobs"
	"github.com/ringback/ringback/store/redis/keeper"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/queue"
	"github.com/ringback/ringback/store/redis/repair"
	"github.com/ringback/ringback/store/redis/settings"
	"github.com/ringback/ringback/store/redis/shard"
	"github.com/ringback/ringback/store/redis/tail"
)

// A Store is the engine. Open returns it.
type Store struct {
	*layout.Runner
	*tail.Tail
	shards    []*storeShard
	documents *settings.Documents
	health    *health.Monitor
	repairs   *repair.Process
	now       func() time.Time // the clock of the health checks; tests advance it

	closing sync.Once
	closed  error
}

// A storeShard implements store.Shard by parts, one for each of its interfaces.
type storeShard struct {
	*shard.Shard
	*queue.Queue
	*jobs.Jobs
	*keeper.Keeper
	*repair.Repairer
	*counts.Counts
	*settings.Lanes
}

var _ store.Store = (*Store)(nil)

// Shards returns the shards in order.
func (s *Store) Shards() []store.Shard {
	shards := make([]store.Shard, len(s.shards))
	for i, sh := range s.shards {
		shards[i] = sh
	}
	return shards
}

// PutDocument implements store.Settings.
func (s *Store) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	return s.documents.PutDocument(ctx, token, doc, limits)
}

// GetDocuments implements store.Settings.
func (s *Store) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	return s.documents.GetDocuments(ctx, keys)
}

// ListDocuments implements store.Settings.
func (s *Store) ListDocuments(
	ctx context.Context, after store.DocumentKey, limit int,
) ([]store.Document, int64, error) {
	return s.documents.ListDocuments(ctx, after, limit)
}

// ListChanges implements store.Settings. It also checks the servers: a process that only registers jobs may make
// no other call regularly.
func (s *Store) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	s.health.Check(ctx)
	return s.documents.ListChanges(ctx, kind, since)
}

// Ping writes a key with a TTL to each shard: a read-only server is of no use, and on a cluster each server has other
// shards. It also returns what package health found.
func (s *Store) Ping(ctx context.Context) error {
	pipe := s.Client.Pipeline()
	for _, sh := range s.shards {
		pipe.Set(ctx, sh.Keys.Tag+"ping", "1", time.Minute)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("ping: %w", connect.MapError(ctx, err))
	}
	s.health.Check(ctx)
	return s.health.CheckReady()
}

// Close closes every connection.
func (s *Store) Close() error {
	s.closing.Do(func() {
		for _, sh := range s.shards {
			sh.Queue.Close()
			sh.Keeper.Close()
		}
		if err := s.Client.Close(); err != nil {
			s.closed = fmt.Errorf("close redis: %w", err)
		}
	})
	return s.closed
}
