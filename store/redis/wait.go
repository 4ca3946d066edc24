package redis

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

// A Wait says for what the answer to a change waits, beyond Redis having run it. What is not reached in time is no
// error: the change stands, and its answer says what was reached. The zero Wait waits for nothing.
type Wait struct {
	// Replicas must have it, 0 to 64: in memory (WAIT), or with Fsync on disk.
	Replicas int
	// Fsync: it must be on the server's own disk (WAITAOF, Redis 7.2; needs appendonly yes).
	Fsync bool
	// Timeout bounds the waiting, 1 ms to 5 s.
	Timeout time.Duration
}

// Bounds and default of a Wait.
const (
	mostReplicas = 64
	waitStandard = 100 * time.Millisecond
	waitLeast    = time.Millisecond
	waitMost     = 5 * time.Second
	waitForm     = "such as replicas=1,timeout=100ms or fsync"
)

const (
	markExpiry = time.Minute
	// maxRedirects is how often a call is made again where a cluster redirects it, or a server is gone, after reloadPause each.
	maxRedirects = 3
	reloadPause  = 100 * time.Millisecond
)

// ParseWait reads replicas=N, fsync and timeout=D, separated by commas, each at most once; the timeout is 100ms unless
// said. Empty text is no Wait.
func ParseWait(text string) (Wait, error) {
	var w Wait
	if text == "" {
		return w, nil
	}
	w.Timeout = waitStandard
	said := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, valued := strings.Cut(strings.TrimSpace(part), "=")
		if said[name] {
			return Wait{}, fmt.Errorf("%s is said twice", name)
		}
		said[name] = true
		var err error
		switch {
		case name == "replicas" && valued:
			if w.Replicas, err = strconv.Atoi(value); err != nil || w.Replicas < 1 || w.Replicas > mostReplicas {
				return Wait{}, fmt.Errorf("replicas=%s is not in 1 to %d", value, mostReplicas)
			}
		case name == "timeout" && valued:
			if w.Timeout, err = time.ParseDuration(value); err != nil || w.Timeout < waitLeast || w.Timeout > waitMost {
				return Wait{}, fmt.Errorf("timeout=%s is not in %s to %s", value, waitLeast, waitMost)
			}
		case name == "fsync" && !valued:
			w.Fsync = true
		default:
			return Wait{}, fmt.Errorf("%q is not %s", part, waitForm)
		}
	}
	if !w.asked() {
		return Wait{}, errors.New("say for what to wait, " + waitForm)
	}
	return w, nil
}

// asked tells whether there is anything to wait for.
func (w Wait) asked() bool { return w.Replicas > 0 || w.Fsync }

// command is Redis's.
func (w Wait) command() []any {
	ms := max(w.Timeout.Milliseconds(), 1)
	if w.Fsync {
		return []any{"WAITAOF", 1, w.Replicas, ms}
	}
	return []any{"WAIT", w.Replicas, ms}
}

// read reads the command's answer.
func (w Wait) read(reply any) (*job.Durability, error) {
	if !w.Fsync {
		n, ok := reply.(int64)
		if !ok {
			return nil, fmt.Errorf("redis: unknown reply to WAIT: %v", reply)
		}
		return &job.Durability{Replicas: int(n)}, nil
	}
	both := list(reply)
	if len(both) != 2 {
		return nil, fmt.Errorf("redis: unknown reply to WAITAOF: %v", reply)
	}
	return &job.Durability{Synced: num(both[0]) > 0, Replicas: int(num(both[1]))}, nil
}

// evalDurable runs a script whose change is promised to a caller: it waits for as much durability as was asked for, on the
// same connection, since Redis waits for what its connection wrote. A repeat of a call writes nothing that could be
// waited for; so a mark is written after it, which comes to the replicas and to the log after the change.
func (r *runner) evalDurable(ctx context.Context, s *script, keys []string, args []any) (any, *job.Durability, error) {
	if !r.wait.asked() {
		reply, err := r.eval(ctx, s, keys, args)
		return reply, nil, err
	}
	for turn := 0; ; turn++ {
		reply, reached, err := r.evalDurableOnce(ctx, s, keys, args)
		if err == nil || turn == maxRedirects || !isRedirect(err) || !r.reloadSlots(ctx) {
			return reply, reached, fault(ctx, err)
		}
	}
}

// evalDurableOnce makes one trip to the server that has the keys, and a second one when it does not know the script.
func (r *runner) evalDurableOnce(ctx context.Context, s *script, keys []string, args []any) (any, *job.Durability, error) {
	server, err := node(ctx, r.client, keys[0])
	if err != nil {
		return nil, nil, err
	}
	var mark *redis.StatusCmd
	trip := func(run func(redis.Pipeliner) *redis.Cmd) (*redis.Cmd, *redis.Cmd) {
		pipe := server.Pipeline()
		change := run(pipe)
		mark = pipe.Set(ctx, markOf(keys[0]), "1", markExpiry)
		waited := pipe.Do(ctx, r.wait.command()...)
		_, _ = pipe.Exec(ctx) // the error is that of a command, and read from it
		return change, waited
	}
	change, waited := trip(func(p redis.Pipeliner) *redis.Cmd { return p.EvalSha(ctx, s.sha, keys, args...) })
	if redis.HasErrorPrefix(change.Err(), "NOSCRIPT") {
		change, waited = trip(func(p redis.Pipeliner) *redis.Cmd { return p.Eval(ctx, s.text, keys, args...) })
	}
	reply, err := change.Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, nil, err //nolint:wrapcheck // kept turns it into a fault
	}
	marked := mark.Err() == nil
	answer, err := waited.Result()
	_, refused := errors.AsType[redis.Error](err)
	switch {
	case refused && !isClientSide(err) && !redis.HasErrorPrefix(err, "UNBLOCKED"):
		// The change stands; it cannot be waited for here, as on a replica without a log that took over.
		r.unwaited.Do(func() {
			r.log.WarnContext(ctx, "WAIT/WAITAOF rejected; replies report no durability", "err", err)
		})
		return reply, &job.Durability{}, nil
	case err != nil:
		return nil, nil, err //nolint:wrapcheck // as above
	case !marked:
		return reply, &job.Durability{}, nil // what was waited for may be older than this change
	}
	reached, err := r.wait.read(answer)
	return reply, reached, err
}

// markOf is a key in the slot of another.
func markOf(key string) string {
	if i := strings.IndexByte(key, '}'); i >= 0 {
		return key[:i+1] + ":mark"
	}
	return "{" + key + "}:mark"
}

// isRedirect tells what a cluster may answer differently in a moment, or another of its servers: redirections, and the
// silence of one that is gone.
func isRedirect(err error) bool {
	if _, answer := errors.AsType[redis.Error](err); !answer {
		return true
	}
	for _, code := range []string{"MOVED ", "ASK ", "TRYAGAIN ", "READONLY "} {
		if redis.HasErrorPrefix(err, code) {
			return true
		}
	}
	return false
}

// reloadSlots has the client ask who has which slot, and gives it a moment. False when ctx ended, or there is nobody to ask.
func (r *runner) reloadSlots(ctx context.Context) bool {
	client, ok := r.client.(*redis.ClusterClient)
	if !ok {
		return false
	}
	client.ReloadState(ctx)
	timer := time.NewTimer(reloadPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// checkWait refuses a Wait that a server cannot fulfil, by waiting once on each.
func (s *Store) checkWait(ctx context.Context) error {
	if !s.wait.asked() {
		return nil
	}
	return servers(ctx, s.client, func(ctx context.Context, server *redis.Client) error {
		waited := server.Do(ctx, s.wait.command()...)
		err := waited.Err()
		switch {
		case err == nil:
			return nil
		case redis.HasErrorPrefix(err, "unknown command"):
			return errors.New("redis: to wait for fsync needs Redis 7.2 or later (WAITAOF)")
		case strings.Contains(err.Error(), "appendonly"):
			return errors.New("redis: to wait for fsync needs appendonly yes")
		}
		return fmt.Errorf("wait for durability: %w", fault(ctx, err))
	})
}
