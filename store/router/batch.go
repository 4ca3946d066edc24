package router

import (
	"context"
	"slices"
	"sync"
)

// batcher combines the items of concurrent callers into few calls: items that arrive during a call wait and form the
// next one. It has no timer: an idle batcher adds no delay and has no goroutine, and calls grow with the load.
//
// It is safe for concurrent use. Memory is bounded by the number of callers, since they wait.
type batcher[T, R any] struct {
	maxItems int
	maxSize  int
	size     func(T) int
	call     func([]T) ([]R, error)

	mu      sync.Mutex
	running bool
	waiting []*group[T, R]
}

// group is the items of one caller. They are sent in one call.
type group[T, R any] struct {
	items   []T
	size    int
	results []R
	err     error
	done    chan struct{} // closed when results or err is set
}

// newBatcher returns a batcher whose calls have at most maxItems items, and groups with a total size of at most
// maxSize; one group always fits. A nil size means that items have no size. call must return one result for each item,
// in order, or an error for all, and must end without its callers' contexts. It makes one call at a time.
func newBatcher[T, R any](maxItems, maxSize int, size func(T) int, call func([]T) ([]R, error)) *batcher[T, R] {
	if maxItems < 1 || call == nil {
		panic("router: a batcher needs room for an item and a call")
	}
	return &batcher[T, R]{maxItems: maxItems, maxSize: maxSize, size: size, call: call}
}

// do sends up to maxItems items and waits for their results or the call's error. When ctx ends first, it returns the
// cause: items that wait are removed; items that were sent may still take effect.
func (b *batcher[T, R]) do(ctx context.Context, items []T) ([]R, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if len(items) > b.maxItems {
		panic("router: more items than a batch holds")
	}
	g := &group[T, R]{items: items, done: make(chan struct{})}
	if b.size != nil {
		for _, item := range items {
			g.size += b.size(item)
		}
	}
	b.mu.Lock()
	b.waiting = append(b.waiting, g)
	if !b.running {
		b.running = true
		go b.run()
	}
	b.mu.Unlock()

	select {
	case <-g.done:
		return g.results, g.err
	case <-ctx.Done():
		b.remove(g)
		return nil, context.Cause(ctx)
	}
}

// remove removes a group that waits.
func (b *batcher[T, R]) remove(g *group[T, R]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(w *group[T, R]) bool { return w == g })
}

// run makes calls until no group waits.
func (b *batcher[T, R]) run() {
	for {
		batch := b.nextBatch()
		if len(batch) == 0 {
			return
		}
		items := batch[0].items
		if len(batch) > 1 {
			items = make([]T, 0, b.maxItems)
			for _, g := range batch {
				items = append(items, g.items...)
			}
		}
		results, err := b.call(items)
		for _, g := range batch {
			if g.err = err; err == nil {
				g.results, results = results[:len(g.items):len(g.items)], results[len(g.items):]
			}
			close(g.done)
		}
	}
}

// nextBatch removes and returns the first waiting groups that fit into one call. If it returns none, the next caller
// starts a new run.
func (b *batcher[T, R]) nextBatch() []*group[T, R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, items, size := 0, 0, 0
	for n < len(b.waiting) {
		g := b.waiting[n]
		if n > 0 && (items+len(g.items) > b.maxItems || size+g.size > b.maxSize) {
			break
		}
		items, size = items+len(g.items), size+g.size
		n++
	}
	b.running = n > 0
	batch := slices.Clone(b.waiting[:n])
	b.waiting = slices.Delete(b.waiting, 0, n)
	return batch
}
