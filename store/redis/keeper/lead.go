package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/connect"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/settings"
)

// leadership is a held carrier lock.
type leadership struct {
	keeper *Keeper
	value  string        // of the lock
	copied int64         // revision of the policies that were copied to the shard last
	again  time.Duration // by the process's clock: the policies' revision is not read before
}

// Lead takes the shard's carrier lock and updates the shard's copy of the policies' limits: the process that was
// writing them may have died half way.
func (s *Keeper) Lead(ctx context.Context) (store.Leadership, error) {
	l := &leadership{keeper: s, value: string(store.NewToken()), copied: settings.UnknownRevision}
	err := l.run(ctx, scriptLead, l.value, store.LeadershipTTL.Milliseconds())
	if err != nil {
		return nil, fmt.Errorf("lead: %w", err)
	}
	if err := l.copyNewer(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("lead: %w", err), l.Release(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// run runs a script on the lock; ErrNotLeader: it replied 0.
func (l *leadership) run(ctx context.Context, script *layout.Script, args ...any) error {
	ctx, cancel := connect.WithTimeout(ctx, store.LeadershipTTL)
	defer cancel()
	return checkHeld(l.keeper.Eval(ctx, script, []string{l.keeper.Keys.Carrier}, args))
}

func checkHeld(reply any, err error) error {
	if err == nil && layout.Num(reply) == 0 {
		err = store.ErrNotLeader
	}
	return err
}

// extension returns the call that extends the lock.
func (l *leadership) extension() *layout.Call {
	return &layout.Call{
		Script: scriptExtend, Keys: []string{l.keeper.Keys.Carrier},
		Args: []any{l.value, store.LeadershipTTL.Milliseconds()},
	}
}

// Extend extends the lock by store.LeadershipTTL, and copies policies that were written since: their writer may have
// died before it had copied them.
func (l *leadership) Extend(ctx context.Context) error {
	call := l.extension()
	if err := l.run(ctx, call.Script, call.Args...); err != nil {
		return fmt.Errorf("extend the lead: %w", err)
	}
	if err := l.copyNewer(ctx); err != nil {
		return fmt.Errorf("extend the lead: %w", err)
	}
	return nil
}

// runExtending extends the lock of a round and runs a call in the same round trip.
func (s *Keeper) runExtending(ctx context.Context, round *store.CarryOptions, c *layout.Call) (any, error) {
	l, ok := round.Lead.(*leadership)
	if !ok || l.keeper != s {
		if err := round.ExtendLead(ctx); err != nil {
			return nil, err
		}
		return s.Run(ctx, c)
	}
	held, reply, err := s.RunBoth(ctx, l.extension(), c)
	if err = checkHeld(held, err); err != nil {
		return nil, err
	}
	return reply, l.copyNewer(ctx)
}

const (
	// policiesTimeout bounds reading the policies, and policiesPause is the pause between two reads.
	policiesTimeout = time.Second
	policiesPause   = 10 * time.Second
)

// copyNewer copies the policies when their revision changed. It looks every policiesPause: only a writer that died
// leaves something to copy. While the policies are unavailable (on a cluster they may be on another server), the shard
// keeps its limits and is carried.
func (l *leadership) copyNewer(ctx context.Context) error {
	if l.keeper.process.elapsed() < l.again {
		return nil
	}
	l.again = l.keeper.process.elapsed() + policiesPause
	ctx, cancel := connect.WithTimeout(ctx, policiesTimeout)
	defer cancel()
	revision, err := l.keeper.policies.Revision(ctx, store.KindTopic)
	if err == nil && revision != l.copied {
		revision, err = l.keeper.policies.CopyLimits(ctx, l.keeper.Shard, l.copied)
	}
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return nil
	case err != nil:
		return err
	}
	l.copied = revision
	return nil
}

// Release releases the lock; one that was already lost is no error.
func (l *leadership) Release(ctx context.Context) error {
	if err := l.run(ctx, scriptRelease, l.value); err != nil && !errors.Is(err, store.ErrNotLeader) {
		return fmt.Errorf("release the lead: %w", err)
	}
	return nil
}
