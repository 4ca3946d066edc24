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

// A lead is the lock as its holder has it.
type lead struct {
	store *Store
	token store.Token
}

// Lead implements store.Shard.
func (s *Store) Lead(ctx context.Context) (store.Leadership, error) {
	if err := s.db.Usable(ctx, "take the carrier lock"); err != nil {
		return nil, err
	}
	now, l := s.clock().Mono, &s.lead
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token != "" && now < l.until {
		return nil, store.ErrNotLeader
	}
	l.token, l.until = store.NewToken(), now+int64(store.LeadershipTTL)
	return &lead{store: s, token: l.token}, nil
}

// Extend implements store.Leadership.
func (h *lead) Extend(ctx context.Context) error {
	if err := h.store.db.Usable(ctx, "extend the carrier lock"); err != nil {
		return err
	}
	now, l := h.store.clock().Mono, &h.store.lead
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
	l := &h.store.lead
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token == h.token {
		l.token = ""
	}
	return nil
}
