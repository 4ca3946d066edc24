package connect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// defaultBlock is how long one blocking command may take. A connection that died is detected within blockGrace
	// more.
	defaultBlock = 5 * time.Second
	blockGrace   = 3 * time.Second
	// interruptTime is how long a blocking command may take to end when its context has ended. Then its connection is
	// closed.
	interruptTime = time.Second
	// pushInterrupt adds an element to a list, never without an expiry. It needs no rights that scripts do not need.
	pushInterrupt = `redis.call("RPUSH", KEYS[1], "") return redis.call("PEXPIRE", KEYS[1], ARGV[1])`
)

// errInterrupted: a blocking command has taken an element of Interrupt.
var errInterrupted = errors.New("interrupted")

// A Listener waits for elements of lists on a separate connection, which it opens as needed. Its zero value is ready
// for use. It never repeats a command: a second BLPOP would take a second element. It is for one Pop at a time.
type Listener struct {
	// Interrupt is a list of this Listener's own, on the server of the others. An element in it ends the blocking
	// command when the context ends, so that the connection stays open. Empty: the connection is closed.
	Interrupt string

	mu     sync.Mutex
	client *blockingClient
	closed bool
	served string // the list of the last elements
}

// Pop takes up to most elements of one of the lists, and waits for the first: for timeout, by default 5 s. Lists with
// elements take turns. It returns no elements after the timeout. When ctx ends it returns the elements that it has
// taken, or else the context's cause.
func (l *Listener) Pop(
	ctx context.Context, c *Client, keys []string, most int, timeout time.Duration,
) (popped []string, err error) {
	if timeout <= 0 {
		timeout = defaultBlock
	}
	if i := slices.Index(keys, l.served); i >= 0 && len(keys) > 1 { // Redis takes the first list with elements
		keys = slices.Concat(keys[i+1:], keys[:i+1])
	}
	if l.Interrupt != "" {
		keys = slices.Concat([]string{l.Interrupt}, keys)
	}
	end := time.Now().Add(timeout)
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("wait for wake-ups: %w", context.Cause(ctx))
		}
		popped, err = l.popOnce(ctx, c, keys, most, min(time.Until(end), defaultBlock))
		if errors.Is(err, errInterrupted) { // by an element that came late: the lists were not looked at
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("wait for wake-ups: %w", err)
		}
		if len(popped) > 0 || time.Until(end) <= 0 {
			return popped, nil
		}
	}
}

// Close closes the connection for good.
func (l *Listener) Close() {
	l.mu.Lock()
	client := l.client
	l.client, l.closed = nil, true
	l.mu.Unlock()
	if client != nil {
		client.abort()
	}
}

// open returns the connection, and opens it if necessary. It does that without l.mu, for which Close waits: the servers
// of a cluster may have to be asked which one serves the key.
func (l *Listener) open(ctx context.Context, c *Client, key string) (*blockingClient, error) {
	l.mu.Lock()
	client, closed := l.client, l.closed
	l.mu.Unlock()
	switch {
	case closed:
		return nil, redis.ErrClosed
	case client != nil:
		return client, nil
	}
	client, err := c.blocking(ctx, c.address.options, key, defaultBlock+blockGrace)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		client.abort()
		return nil, redis.ErrClosed
	}
	l.client = client
	return client, nil
}

// drop closes a connection that is no longer needed, or leads to the wrong server.
func (l *Listener) drop(client *blockingClient) {
	l.mu.Lock()
	if l.client == client {
		l.client = nil
	}
	l.mu.Unlock()
	client.abort()
}

// popOnce blocks once, until ctx ends.
func (l *Listener) popOnce(
	ctx context.Context, c *Client, keys []string, most int, block time.Duration,
) ([]string, error) {
	client, err := l.open(ctx, c, keys[0])
	if err != nil {
		return nil, MapError(ctx, err)
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { l.interrupt(c, client, ended) })
	popped, err := l.blockingPop(context.WithoutCancel(ctx), client, keys, most, block)
	close(ended)
	stop()
	switch {
	case err == nil:
		return popped, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, errInterrupted):
		return nil, err
	case c.IsCluster():
		l.drop(client) // another server may serve the key now
	}
	return nil, MapError(ctx, err)
}

// interrupt ends a blocking command, unless it has ended. An element that comes too late ends the next one, or expires.
func (l *Listener) interrupt(c *Client, client *blockingClient, ended <-chan struct{}) {
	if l.Interrupt != "" {
		ctx, cancel := context.WithTimeout(context.Background(), interruptTime)
		defer cancel()
		if err := c.Eval(ctx, pushInterrupt, []string{l.Interrupt}, 2*defaultBlock.Milliseconds()).Err(); err == nil {
			select {
			case <-ended:
				return
			case <-ctx.Done():
			}
		}
	}
	select {
	case <-ended:
	default:
		l.drop(client)
	}
}

// blockingPop waits for one element, and takes the others of its list that are there.
func (l *Listener) blockingPop(
	ctx context.Context, client redis.UniversalClient, keys []string, most int, block time.Duration,
) ([]string, error) {
	args := make([]any, 0, 2+len(keys))
	args = append(args, "blpop")
	for _, key := range keys {
		args = append(args, key)
	}
	args = append(args, strconv.FormatFloat(max(block, 10*time.Millisecond).Seconds(), 'f', 3, 64))
	cmd := redis.NewStringSliceCmd(ctx, args...)
	_ = client.Process(ctx, cmd) // cmd has the error
	first, err := cmd.Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, err
	case len(first) != 2:
		return nil, errors.New("redis: unknown reply to BLPOP")
	}
	if first[0] == l.Interrupt {
		return nil, errInterrupted
	}
	l.served = first[0]
	if most == 1 {
		return first[1:], nil
	}
	rest, err := client.LPopCount(ctx, l.served, most-1).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	return append(first[1:], rest...), nil
}
