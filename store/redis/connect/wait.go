package connect

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
)

// Wait is the durability that a write waits for after Redis has run it. It is no error when that is not reached in
// time: the write is reported with the durability that was reached. The zero Wait waits for nothing.
type Wait struct {
	// Replicas is how many replicas must have the write, 0 to 64: in memory (WAIT), or with Fsync on disk.
	Replicas int
	// Fsync requires it on the server's own disk (WAITAOF, Redis 7.2; requires appendonly yes).
	Fsync bool
	// Timeout bounds the wait, 1 ms to 5 s.
	Timeout time.Duration
}

// Bounds and default of a Wait.
const (
	maxReplicas    = 64
	defaultTimeout = 100 * time.Millisecond
	minTimeout     = time.Millisecond
	maxTimeout     = 5 * time.Second
	waitExample    = "such as replicas=1,timeout=100ms or fsync"
	markerTTL      = time.Minute
)

// UnmarshalText parses replicas=N, fsync and timeout=D, separated by commas, each at most once. The default timeout is
// 100ms. Empty text is the zero Wait. It implements encoding.TextUnmarshaler.
func (w *Wait) UnmarshalText(text []byte) error {
	*w = Wait{}
	if len(text) == 0 {
		return nil
	}
	w.Timeout = defaultTimeout
	seen := map[string]bool{}
	for part := range strings.SplitSeq(string(text), ",") {
		name, value, valued := strings.Cut(strings.TrimSpace(part), "=")
		if seen[name] {
			return fmt.Errorf("duplicate %s", name)
		}
		seen[name] = true
		var err error
		switch {
		case name == "replicas" && valued:
			if w.Replicas, err = strconv.Atoi(value); err != nil || w.Replicas < 1 || w.Replicas > maxReplicas {
				return fmt.Errorf("replicas=%s is not in 1 to %d", value, maxReplicas)
			}
		case name == "timeout" && valued:
			if w.Timeout, err = time.ParseDuration(value); err != nil || w.Timeout < minTimeout ||
				w.Timeout > maxTimeout {
				return fmt.Errorf("timeout=%s is not in %s to %s", value, minTimeout, maxTimeout)
			}
		case name == "fsync" && !valued:
			w.Fsync = true
		default:
			return fmt.Errorf("%q is not %s", part, waitExample)
		}
	}
	if !w.enabled() {
		return errors.New("replicas or fsync is required, " + waitExample)
	}
	return nil
}

// String returns the text that UnmarshalText parses.
func (w Wait) String() string {
	if !w.enabled() {
		return ""
	}
	var parts []string
	if w.Replicas > 0 {
		parts = append(parts, "replicas="+strconv.Itoa(w.Replicas))
	}
	if w.Fsync {
		parts = append(parts, "fsync")
	}
	return strings.Join(append(parts, "timeout="+w.Timeout.String()), ",")
}

func (w Wait) enabled() bool { return w.Replicas > 0 || w.Fsync }

// command returns the WAIT or WAITAOF command.
func (w Wait) command() []any {
	ms := max(w.Timeout.Milliseconds(), 1)
	if w.Fsync {
		return []any{"WAITAOF", 1, w.Replicas, ms}
	}
	return []any{"WAIT", w.Replicas, ms}
}

// parse reads the command's reply.
func (w Wait) parse(reply any) (*job.Durability, error) {
	if !w.Fsync {
		n, ok := reply.(int64)
		if !ok {
			return nil, fmt.Errorf("redis: unknown reply to WAIT: %v", reply)
		}
		return &job.Durability{Replicas: int(n)}, nil
	}
	if both, _ := reply.([]any); len(both) == 2 {
		local, ok1 := both[0].(int64)
		replicas, ok2 := both[1].(int64)
		if ok1 && ok2 {
			return &job.Durability{Synced: local > 0, Replicas: int(replicas)}, nil
		}
	}
	return nil, fmt.Errorf("redis: unknown reply to WAITAOF: %v", reply)
}

// Waits reports whether durable writes wait for anything.
func (c *Client) Waits() bool { return c.wait.enabled() }

// CheckWait refuses a Wait that a server does not support, by waiting once on each.
func (c *Client) CheckWait(ctx context.Context) error {
	if !c.Waits() {
		return nil
	}
	return c.EachPrimary(ctx, func(ctx context.Context, server *redis.Client) error {
		err := server.Do(ctx, c.wait.command()...).Err()
		switch {
		case err == nil:
			return nil
		case redis.HasErrorPrefix(err, "unknown command"):
			return errors.New("redis: to wait for fsync needs Redis 7.2 or later (WAITAOF)")
		case strings.Contains(err.Error(), "appendonly"):
			return errors.New("redis: to wait for fsync needs appendonly yes")
		}
		return fmt.Errorf("wait for durability: %w", MapError(ctx, err))
	})
}

// WriteDurably runs a command that writes to a key and waits for the client's Wait on the same connection, since Redis
// waits for what its connection wrote. It makes one round trip. Errors are not mapped.
//
// A repeated call writes nothing that could be waited for. So a marker is written after the command: it reaches
// replicas and disk after the write.
func (c *Client) WriteDurably(
	ctx context.Context, key string, write func(redis.Pipeliner) *redis.Cmd,
) (reply any, reached *job.Durability, err error) {
	err = c.retryRedirects(ctx, key, func(server *redis.Client) error {
		reply, reached, err = c.writeDurably(ctx, server, key, write)
		return err
	})
	return reply, reached, err
}

func (c *Client) writeDurably(
	ctx context.Context, server *redis.Client, key string, write func(redis.Pipeliner) *redis.Cmd,
) (any, *job.Durability, error) {
	pipe := server.Pipeline()
	written := write(pipe)
	marker := pipe.Set(ctx, markerKey(key), "1", markerTTL)
	waited := pipe.Do(ctx, c.wait.command()...)
	_, _ = pipe.Exec(ctx) // the error is that of a command, and read from it
	reply, err := written.Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, nil, err // callers map it
	}
	marked := marker.Err() == nil
	answer, err := waited.Result()
	_, rejected := errors.AsType[redis.Error](err)
	switch {
	case rejected && !isClientSide(err) && !redis.HasErrorPrefix(err, "UNBLOCKED"):
		// The write is done. WAITAOF may be unsupported on a replica that took over.
		c.warnWait.Do(func() {
			c.log.WarnContext(ctx, "WAIT/WAITAOF rejected; replies report no durability", "err", err)
		})
		return reply, &job.Durability{}, nil
	case err != nil:
		return nil, nil, err
	case !marked:
		return reply, &job.Durability{}, nil // WAIT may have waited for an earlier write
	}
	reached, err := c.wait.parse(answer)
	return reply, reached, err
}

// markerKey returns a key in the slot of another.
func markerKey(key string) string {
	if i := strings.IndexByte(key, '}'); i >= 0 {
		return key[:i+1] + ":mark"
	}
	return "{" + key + "}:mark"
}
