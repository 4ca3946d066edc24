package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
)

// A Store is the engine. Make it with Open.
type Store struct {
	*runner
	prefix   string
	limits   policy.Limits // of topics without a stored policy
	shards   []*shard
	health   health
	pace     pace // of checks after a restart
	idlePace pace // of those made daily
	// What one script of a check counts at most: repairLanes and repairLists, but in tests.
	lanesAtOnce, endedAtOnce int

	unchecked sync.Once            // it was told that checks are not permitted
	me        string               // names this process where it notes readings of Redis's clock
	elapsed   func() time.Duration // the process's monotonic clock

	closing sync.Once
	closed  error
}

var _ store.Store = (*Store)(nil)

// staleTries bounds how often a call is made anew after a database was emptied under it.
const staleTries = 3

// Shards are the shards, in order.
func (s *Store) Shards() []store.Shard {
	shards := make([]store.Shard, len(s.shards))
	for i, sh := range s.shards {
		shards[i] = sh
	}
	return shards
}

// retryStale runs do, and again when queues' numbers turned out to be stale.
func (s *Store) retryStale(sh *shard, do func() error) error {
	var err error
	for range staleTries {
		if err = do(); !errors.Is(err, errStale) {
			return err
		}
		sh.forget()
	}
	return &store.UnavailableError{Reason: "redis: the database was emptied", RetryAfter: time.Second, Err: err}
}

// Ping writes a key that goes by itself beside each shard: a server that only reads is of no use, and on a cluster each
// server has shards of its own. It also says what was noticed of the servers: see health.
func (s *Store) Ping(ctx context.Context) error {
	pipe := s.client.Pipeline()
	for _, sh := range s.shards {
		pipe.Set(ctx, sh.keys.Tag+"ping", "1", time.Minute)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("ping: %w", connect.MapError(ctx, err))
	}
	s.checkHealth(ctx)
	return s.health.unready()
}

// Close closes every connection.
func (s *Store) Close() error {
	s.closing.Do(func() {
		for _, sh := range s.shards {
			sh.wakeups.close()
			sh.agendaMoves.close()
		}
		if err := s.client.Close(); err != nil {
			s.closed = fmt.Errorf("close redis: %w", err)
		}
	})
	return s.closed
}

// checkBatchSize holds callers to the contract's batch.
func checkBatchSize(n int) {
	if n > store.MaxBatch {
		panic("redis: more items in a call than store.MaxBatch")
	}
}

// queuesOf are the distinct queues of a batch, in order, and where each item's is among them, from 1.
func queuesOf[T any](items []T, of func(*T) job.Queue) (queues []job.Queue, position []int) {
	position = make([]int, len(items))
	if len(items) == 0 {
		return nil, position
	}
	first := of(&items[0])
	seen := map[job.Queue]int{}
	for i := range items {
		q := of(&items[i])
		if q == first {
			position[i] = 1
			if i == 0 {
				queues = append(queues, q)
			}
			continue
		}
		at, ok := seen[q]
		if !ok {
			queues = append(queues, q)
			at = len(queues)
			seen[q] = at
		}
		position[i] = at
	}
	return queues, position
}
