package store

import (
	"context"
	"sync"
)

// A Batcher joins the items of concurrent callers into as few calls as possible: while one call is under way, what
// comes waits, and goes together as the next. An idle Batcher adds no delay and has no goroutine, a loaded one grows its
// calls; there is no timer.
//
// Safe for concurrent use. Memory is bounded by the callers, who wait.
type Batcher[T, R any] struct {
	most  int
	room  int
	weigh func(T) int
	flush func([]T) []R

	mu      sync.Mutex
	busy    bool
	waiting []*group[T, R]
}

// A group is what one caller brought; its items are never parted.
type group[T, R any] struct {
	items   []T
	weight  int
	results []R
	done    chan struct{} // closed when results are there
}

// NewBatcher makes a Batcher whose calls take at most most items, and groups of items up to the weight room (one group
// always fits; a nil weigh weighs nothing). flush must answer a result for each item, in order, and must end by itself;
// one call is made at a time.
func NewBatcher[T, R any](most, room int, weigh func(T) int, flush func([]T) []R) *Batcher[T, R] {
	if most < 1 || flush == nil {
		panic("store: a batcher needs room for an item and a flush")
	}
	return &Batcher[T, R]{most: most, room: room, weigh: weigh, flush: flush}
}

// Do brings items, at most the batcher's most, and waits for their results. When ctx ends first the error is its cause:
// items not yet under way are taken back, others may still take effect.
func (b *Batcher[T, R]) Do(ctx context.Context, items []T) ([]R, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if len(items) > b.most {
		panic("store: more items than a batch holds")
	}
	g := &group[T, R]{items: items, done: make(chan struct{})}
	if b.weigh != nil {
		for _, item := range items {
			g.weight += b.weigh(item)
		}
	}
	b.mu.Lock()
	b.waiting = append(b.waiting, g)
	if !b.busy {
		b.busy = true
		go b.run()
	}
	b.mu.Unlock()

	select {
	case <-g.done:
		return g.results, nil
	case <-ctx.Done():
		b.leave(g)
		return nil, context.Cause(ctx)
	}
}

// leave takes a group back that is not under way.
func (b *Batcher[T, R]) leave(g *group[T, R]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, w := range b.waiting {
		if w == g {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			return
		}
	}
}

// run makes calls until nobody waits.
func (b *Batcher[T, R]) run() {
	for {
		taken := b.take()
		if len(taken) == 0 {
			return
		}
		all := taken[0].items
		if len(taken) > 1 {
			all = make([]T, 0, b.most)
			for _, g := range taken {
				all = append(all, g.items...)
			}
		}
		results := b.flush(all)
		for _, g := range taken {
			g.results, results = results[:len(g.items):len(g.items)], results[len(g.items):]
			close(g.done)
		}
	}
}

// take takes the groups at the head of the line that fit into one call. When there are none, the next caller starts a
// new run.
func (b *Batcher[T, R]) take() []*group[T, R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, items, weight := 0, 0, 0
	for n < len(b.waiting) {
		g := b.waiting[n]
		if n > 0 && (items+len(g.items) > b.most || weight+g.weight > b.room) {
			break
		}
		items, weight = items+len(g.items), weight+g.weight
		n++
	}
	b.busy = n > 0
	taken := append([]*group[T, R](nil), b.waiting[:n]...)
	b.waiting = append(b.waiting[:0], b.waiting[n:]...)
	clear(b.waiting[len(b.waiting):cap(b.waiting)])
	return taken
}
