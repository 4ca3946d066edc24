package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
)

const (
	// awaitDefault is how long Wait blocks when it is not told, and how long one blocking command may take: a
	// connection that died unnoticed is found within blockGrace more.
	awaitDefault = 5 * time.Second
	blockGrace   = 3 * time.Second
)

// A listener is a shard's blocking connection: a client of its own, which never sends a command again by itself, since
// a second BLPOP would take a second token.
type listener struct {
	mu     sync.Mutex
	client *connect.BlockingClient
	closed bool
}

// get gives the connection, made anew where the last one was dropped.
func (l *listener) get(ctx context.Context, s *Store, key string) (*connect.BlockingClient, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, redis.ErrClosed
	}
	if l.client == nil {
		client, err := s.client.Blocking(ctx, key, awaitDefault+blockGrace)
		if err != nil {
			return nil, err
		}
		l.client = client
	}
	return l.client, nil
}

// drop closes a connection that is waited for no longer, or leads to the wrong server.
func (l *listener) drop(client *connect.BlockingClient) {
	l.mu.Lock()
	if l.client == client {
		l.client = nil
	}
	l.mu.Unlock()
	client.Abort()
}

func (l *listener) close() {
	l.mu.Lock()
	client := l.client
	l.client, l.closed = nil, true
	l.mu.Unlock()
	if client != nil {
		client.Abort()
	}
}

// Wait blocks on the shard's own connection.
func (sh *shard) Wait(ctx context.Context, watch store.WaitOptions) (store.Wakeup, error) {
	s := sh.store
	if err := ctx.Err(); err != nil {
		return store.Wakeup{}, fmt.Errorf("await the bell: %w", context.Cause(ctx))
	}
	if watch.Timeout <= 0 {
		watch.Timeout = awaitDefault
	}
	watch.Max = min(cmp.Or(max(watch.Max, 0), store.MaxBatch), store.MaxBatch)
	end := time.Now().Add(watch.Timeout)
	for {
		rung, err := s.await(ctx, sh, &watch, min(time.Until(end), awaitDefault))
		if err != nil {
			return store.Wakeup{}, fmt.Errorf("await the bell: %w", err)
		}
		if len(rung.Queues) > 0 || rung.AgendaMoved || time.Until(end) <= 0 {
			return rung, nil
		}
	}
}

// await blocks once. The connection is closed when ctx ends: nothing else ends a BLPOP.
func (s *Store) await(ctx context.Context, sh *shard, watch *store.WaitOptions, block time.Duration) (store.Wakeup, error) {
	client, err := sh.listener.get(ctx, s, sh.keys.Wake)
	if err != nil {
		return store.Wakeup{}, connect.MapError(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { sh.listener.drop(client) })
	numbers, wake, err := listen(context.WithoutCancel(ctx), client, sh, watch, block)
	if !stop() {
		return store.Wakeup{}, context.Cause(ctx)
	}
	if err != nil {
		if s.client.IsCluster() {
			sh.listener.drop(client) // another server may have the shard now
		}
		return store.Wakeup{}, connect.MapError(ctx, err)
	}
	found, err := sh.named(ctx, s.client, numbers)
	if err != nil {
		return store.Wakeup{}, err
	}
	rung := store.Wakeup{AgendaMoved: wake}
	seen := make(map[*layout.Queue]bool, len(found))
	for _, q := range found {
		if !seen[q] {
			seen[q] = true
			rung.Queues = append(rung.Queues, q.Queue)
		}
	}
	return rung, nil
}

// listen takes one token, waiting for it, and then those that are there.
func listen(ctx context.Context, client redis.UniversalClient, sh *shard, watch *store.WaitOptions, block time.Duration) ([]string, bool, error) {
	bell := sh.keys.Bell(watch.Group)
	seconds := strconv.FormatFloat(max(block, 10*time.Millisecond).Seconds(), 'f', 3, 64)
	args := []any{"blpop", bell, seconds}
	if watch.Agenda {
		args = []any{"blpop", sh.keys.Wake, bell, seconds}
	}
	first := redis.NewStringSliceCmd(ctx, args...)
	if err := client.Process(ctx, first); err != nil {
		if errors.Is(err, redis.Nil) {
			return nil, false, nil
		}
		return nil, false, err
	}
	popped := first.Val()
	if len(popped) != 2 {
		return nil, false, errors.New("redis: unknown reply to BLPOP")
	}
	numbers, wake := []string(nil), popped[0] == sh.keys.Wake
	if !wake {
		numbers = append(numbers, popped[1])
	}
	left := watch.Max - len(numbers)
	if left == 0 && !watch.Agenda {
		return numbers, wake, nil
	}
	pipe := client.Pipeline()
	var rest *redis.StringSliceCmd
	if left > 0 {
		rest = pipe.LPopCount(ctx, bell, left)
	}
	var woken *redis.StringCmd
	if watch.Agenda {
		woken = pipe.LPop(ctx, sh.keys.Wake)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, false, err
	}
	if rest != nil {
		numbers = append(numbers, rest.Val()...)
	}
	return numbers, wake || (woken != nil && woken.Val() != ""), nil
}

// Notify puts queues on the bell that have something to claim.
func (sh *shard) Notify(ctx context.Context, queues []job.Queue) error {
	s := sh.store
	checkBatchSize(len(queues))
	names, _ := queuesOf(queues, func(q *job.Queue) job.Queue { return *q })
	err := s.retryStale(sh, func() error {
		found, err := sh.find(ctx, s.runner, names)
		if err != nil {
			return err
		}
		known := make([]*layout.Queue, 0, len(found))
		for _, q := range found {
			if q != nil {
				known = append(known, q)
			}
		}
		if len(known) == 0 {
			return nil
		}
		_, err = s.do(ctx, s.newCall(sh, scriptRing, sh.keys.Reply("", ""), known, nil, 0))
		return err
	})
	if err != nil {
		return fmt.Errorf("ring: %w", err)
	}
	return nil
}
