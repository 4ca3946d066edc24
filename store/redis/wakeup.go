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

// Wait blocks on a connection for the shard's wake-ups.
func (sh *shard) Wait(ctx context.Context, watch store.WaitOptions) (store.Wakeup, error) {
	most := min(cmp.Or(max(watch.Max, 0), store.MaxBatch), store.MaxBatch)
	numbers, err := sh.wakeups.pop(ctx, sh, sh.keys.Bell(watch.Group), most, watch.Timeout)
	if err != nil || len(numbers) == 0 {
		return store.Wakeup{}, err
	}
	found, err := sh.named(ctx, sh.store.client, numbers)
	if err != nil {
		return store.Wakeup{}, fmt.Errorf("wait for wake-ups: %w", err)
	}
	var wakeup store.Wakeup
	for _, q := range distinct(found) {
		wakeup.Queues = append(wakeup.Queues, q.Queue)
	}
	return wakeup, nil
}

// WaitAgenda blocks on a connection for the shard's agenda.
func (sh *shard) WaitAgenda(ctx context.Context, timeout time.Duration) (bool, error) {
	moved, err := sh.agendaMoves.pop(ctx, sh, sh.keys.Wake, 1, timeout)
	return len(moved) > 0, err
}

// pop takes up to most elements of a list, and waits for the first.
func (l *listener) pop(ctx context.Context, sh *shard, key string, most int, timeout time.Duration) (popped []string, err error) {
	if timeout <= 0 {
		timeout = awaitDefault
	}
	end := time.Now().Add(timeout)
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("wait for wake-ups: %w", context.Cause(ctx))
		}
		popped, err = l.popOnce(ctx, sh.store, key, most, min(time.Until(end), awaitDefault))
		if err != nil {
			return nil, fmt.Errorf("wait for wake-ups: %w", err)
		}
		if len(popped) > 0 || time.Until(end) <= 0 {
			return popped, nil
		}
	}
}

// popOnce blocks once. The connection is closed when ctx ends: nothing else ends a BLPOP.
func (l *listener) popOnce(ctx context.Context, s *Store, key string, most int, block time.Duration) ([]string, error) {
	client, err := l.get(ctx, s, key)
	if err != nil {
		return nil, connect.MapError(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { l.drop(client) })
	popped, err := blockingPop(context.WithoutCancel(ctx), client, key, most, block)
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		if s.client.IsCluster() {
			l.drop(client) // another server may have the shard now
		}
		return nil, connect.MapError(ctx, err)
	}
	return popped, nil
}

// blockingPop takes one element, waiting for it, and then those that are there.
func blockingPop(ctx context.Context, client redis.UniversalClient, key string, most int, block time.Duration) ([]string, error) {
	seconds := strconv.FormatFloat(max(block, 10*time.Millisecond).Seconds(), 'f', 3, 64)
	cmd := redis.NewStringSliceCmd(ctx, "blpop", key, seconds)
	_ = client.Process(ctx, cmd) // cmd has the error
	first, err := cmd.Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, err //nolint:wrapcheck // MapError reads it
	case len(first) != 2:
		return nil, errors.New("redis: unknown reply to BLPOP")
	case most == 1:
		return first[1:], nil
	}
	rest, err := client.LPopCount(ctx, key, most-1).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err //nolint:wrapcheck // MapError reads it
	}
	return append(first[1:], rest...), nil
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
