package layout

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/redis/connect"
)

// ErrStale reports that a queue's number belongs to another queue now, because the database was emptied.
var ErrStale = errors.New("redis: a queue's number is stale")

// A Call is a script with its keys and arguments.
type Call struct {
	Script *Script
	Keys   []string
	Args   []any
}

// Add appends arguments.
func (c *Call) Add(args ...any) { c.Args = append(c.Args, args...) }

// A Runner runs scripts.
type Runner struct {
	Client   *connect.Client
	Defaults string // limits of topics without a stored policy, as layout.FormatLimits returns them
}

// Eval runs a script by its hash, and by its text when the server does not know it.
func (r *Runner) Eval(ctx context.Context, s *Script, keys []string, args []any) (any, error) {
	return r.Run(ctx, &Call{Script: s, Keys: keys, Args: args})
}

// Run runs a call like Eval.
func (r *Runner) Run(ctx context.Context, c *Call) (any, error) {
	return r.finish(ctx, c, c.Script.lua.EvalSha(ctx, r.Client, c.Keys, c.Args...))
}

// EvalList is Eval for a script whose reply is a list of n.
func (r *Runner) EvalList(ctx context.Context, s *Script, n int, keys []string, args []any) ([]any, error) {
	return r.RunList(ctx, &Call{Script: s, Keys: keys, Args: args}, n)
}

// RunList is Run for a call whose reply is a list of n.
func (r *Runner) RunList(ctx context.Context, c *Call, n int) ([]any, error) {
	reply, err := r.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	list := List(reply)
	if len(list) != n {
		return nil, c.Script.Malformed()
	}
	return list, nil
}

// finish returns the reply to an EVALSHA, which it repeats with the text when the server did not know the script.
func (r *Runner) finish(ctx context.Context, c *Call, cmd *redis.Cmd) (any, error) {
	reply, err := cmd.Result()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = c.Script.lua.Eval(ctx, r.Client, c.Keys, c.Args...).Result()
	}
	return reply, mapError(ctx, err)
}

// RunDurably is Run for a change that a caller is promised: it waits for the client's Wait, and returns what was
// reached.
func (r *Runner) RunDurably(ctx context.Context, c *Call) (any, *job.Durability, error) {
	if !r.Client.Waits() {
		reply, err := r.Run(ctx, c)
		return reply, nil, err
	}
	reply, reached, err := r.Client.WriteDurably(ctx, c.Keys[0], func(p redis.Pipeliner) *redis.Cmd {
		return c.Script.lua.EvalSha(ctx, p, c.Keys, c.Args...)
	})
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, reached, err = r.Client.WriteDurably(ctx, c.Keys[0], func(p redis.Pipeliner) *redis.Cmd {
			return c.Script.lua.Eval(ctx, p, c.Keys, c.Args...)
		})
	}
	return reply, reached, mapError(ctx, err)
}

// RunBoth runs two calls in one round trip, the second after the first. A server that knows only the second script
// replies EARLY to it, since the first has not run. Then the second is sent again.
func (r *Runner) RunBoth(ctx context.Context, first, second *Call) (a, b any, err error) {
	pipe := r.Client.Pipeline()
	one := first.Script.lua.EvalSha(ctx, pipe, first.Keys, first.Args...)
	two := second.Script.lua.EvalSha(ctx, pipe, second.Keys, second.Args...)
	_, _ = pipe.Exec(ctx) // the error is that of a command, and read from it
	if a, err = r.finish(ctx, first, one); err != nil {
		return nil, nil, err
	}
	if b, err = r.finish(ctx, second, two); err != nil {
		return nil, nil, err
	}
	if b == "EARLY" {
		b, err = r.Run(ctx, second)
	}
	return a, b, err
}

// mapError maps a script's error to ErrStale or one of package store. A nil reply is no error.
func mapError(ctx context.Context, err error) error {
	switch {
	case err == nil || connect.IsNil(err):
		return nil
	case redis.HasErrorPrefix(err, "STALE"):
		return ErrStale
	default:
		return connect.MapError(ctx, err)
	}
}
