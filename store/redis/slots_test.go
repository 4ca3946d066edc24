package redis

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A keyWatch records the scripts of a store whose keys do not share one hash tag, as they must on a cluster.
type keyWatch struct {
	mu     sync.Mutex
	faults []string
}

// watchKeys fails the test if a script of the store has keys of two slots.
func watchKeys(tb testing.TB, s *Store) *keyWatch {
	w := &keyWatch{}
	s.Client.AddHook(w)
	tb.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, f := range w.faults {
			tb.Error(f)
		}
	})
	return w
}

func (w *keyWatch) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (w *keyWatch) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w.check(cmd)
		return next(ctx, cmd)
	}
}

func (w *keyWatch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			w.check(cmd)
		}
		return next(ctx, cmds)
	}
}

func (w *keyWatch) check(cmd redis.Cmder) {
	args := cmd.Args()
	if name := strings.ToLower(cmd.Name()); name != "evalsha" && name != "eval" {
		return
	}
	n, ok := args[2].(int)
	if !ok || n < 1 {
		w.fault("%v has no keys", args[:3])
		return
	}
	tag := hashTag(args[3])
	for _, key := range args[4 : 3+n] {
		if hashTag(key) != tag {
			w.fault("keys %v and %v of one script are in two slots", args[3], key)
		}
	}
}

func (w *keyWatch) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) < 10 {
		w.faults = append(w.faults, fmt.Sprintf(format, args...))
	}
}

// hashTag returns the part of a key that Redis hashes: the text in its first braces, else the whole key.
func hashTag(key any) string {
	s := fmt.Sprint(key)
	if _, rest, ok := strings.Cut(s, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return s
}
