package limits

import (
	"context"
	"sync"

	"github.com/ringback/ringback/internal/capacity"
)

// Lists bounds the items of lists in memory, those of each store by themselves: one that hangs holds none of the
// others'. The zero value is ready for use. It is safe for concurrent use.
type Lists struct {
	mu     sync.Mutex
	stores map[string]*capacity.Semaphore
}

// Acquire waits until a list of at most limit items, from 1, may be read. Call release once. Error:
// *capacity.FullError, or the cause if ctx was canceled.
func (l *Lists) Acquire(ctx context.Context, holder capacity.Holder, limit int) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, capacity.ListWait)
	defer cancel()
	s, parts := l.of(holder.Store), (limit+capacity.ListItems-1)/capacity.ListItems
	holder.Store = "" // it needs no share
	if err := s.Acquire(ctx, holder, parts); err != nil {
		return nil, err
	}
	return func() { s.Release(holder, parts) }, nil
}

// of returns what bounds the lists of a store.
func (l *Lists) of(store string) *capacity.Semaphore {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stores[store]
	if s == nil {
		s = capacity.Lists.Semaphore(0)
		if l.stores == nil {
			l.stores = make(map[string]*capacity.Semaphore)
		}
		l.stores[store] = s
	}
	return s
}
