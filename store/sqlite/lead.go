package sqlite

import (
	"context"
	"sync"

	"github.com/ringback/ringback/store"
)

// leadLock is the shard's carrier lock. It is in memory, since the store has one process.
type leadLock struct {
	mu    sync.Mutex
	token store.Token
	until int64 // monotonic
}

// isHeld reports whether the lock is held at a time. The caller holds mu.
func (l *leadLock) isHeld(now int64) bool { return l.token != "" && now < l.until }

// A lead is the carrier lock with the token of its holder.
type lead struct {
	keeper *keeping
	token  store.Token
}

// Lead implements store.Keeper.
func (k *keeping) Lead(ctx context.Context) (store.Leadership, error) {
	if err := k.db.Usable(ctx, "take the carrier lock"); err != nil {
		return nil, err
	}
	now, l := k.clock().Mono, &k.lead
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isHeld(now) {
		return nil, store.ErrNotLeader
	}
	l.token, l.until = store.NewToken(), now+int64(store.LeadershipTTL)
	return &lead{keeper: k, token: l.token}, nil
}

// Led reports whether the carrier lock is held.
func (k *keeping) Led() bool {
	now, l := k.clock().Mono, &k.lead
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isHeld(now)
}

// Extend implements store.Leadership.
func (h *lead) Extend(ctx context.Context) error {
	if err := h.keeper.db.Usable(ctx, "extend the carrier lock"); err != nil {
		return err
	}
	now, l := h.keeper.clock().Mono, &h.keeper.lead
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token != h.token || now >= l.until {
		return store.ErrNotLeader
	}
	l.until = now + int64(store.LeadershipTTL)
	return nil
}

// Release implements store.Leadership.
func (h *lead) Release(context.Context) error {
	l := &h.keeper.lead
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token == h.token {
		l.token = ""
	}
	return nil
}
