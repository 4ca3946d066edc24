package store

import (
	"context"
	"sync"
)

// A Batcher joins the items of concurrent callers into as few calls as possible: while one call is under way, what
// comes waits, and goes together as the next. An idle Batcher adds no delay, a loaded one grows its calls; there is no
// timer and no goroutine of its own: one of the waiting callers makes the call for all of them.
//
// Safe for concurrent use. Memory is bounded by the callers, who wait.
type Batcher[T, R any] struct {
	most  int
	flush func([]T) []R

	mu      sync.Mutex
	busy    bool
	waiting []*group[T, R]
}

// A group is what one caller brought; its items are never parted.
type group[T, R any] struct {
	items   []T
	results []R
	turn    chan struct{} // closed when this caller is to make the next call
	done    chan struct{} // closed when results are there
}

// NewBatcher makes a Batcher whose calls take at most most items. flush must answer a result for each item, in order,
// and must end by itself; it runs in one caller's goroutine, one call at a time.
func NewBatcher[T, R any](most int, flush func([]T) []R) *Batcher[T, R] {
	if most < 1 || flush == nil {
		panic("store: a batcher needs room for an item and a flush")
	}
	return &Batcher[T, R]{most: most, flush: flush}
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
	g := &group[T, R]{items: items, turn: make(chan struct{}), done: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, g)
	if !b.busy {
		b.busy = true
		close(g.turn)
	}
	b.mu.Unlock()

	select {
	case <-g.turn:
		b.run()
		return g.results, nil
	case <-g.done:
		return g.results, nil
	case <-ctx.Done():
		return b.leave(ctx, g)
	}
}

// leave takes a group back whose caller waits no longer. A caller that was just given the turn still takes it, since
// nobody else would.
func (b *Batcher[T, R]) leave(ctx context.Context, g *group[T, R]) ([]R, error) {
	b.mu.Lock()
	for i, w := range b.waiting {
		if w != g {
			continue
		}
		select {
		case <-g.turn:
			b.mu.Unlock()
			b.run()
			return g.results, nil
		default:
		}
		b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
		break
	}
	b.mu.Unlock()
	return nil, context.Cause(ctx)
}

// run makes one call for the groups at the head of the line, and passes the turn on.
func (b *Batcher[T, R]) run() {
	b.mu.Lock()
	n, items := 0, 0
	for n < len(b.waiting) && items+len(b.waiting[n].items) <= b.most {
		items += len(b.waiting[n].items)
		n++
	}
	taken := append([]*group[T, R](nil), b.waiting[:n]...)
	b.waiting = append(b.waiting[:0], b.waiting[n:]...)
	clear(b.waiting[len(b.waiting):cap(b.waiting)])
	b.mu.Unlock()

	defer b.pass()
	all := taken[0].items
	if len(taken) > 1 {
		all = make([]T, 0, items)
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

// pass gives the turn to the caller at the head of the line.
func (b *Batcher[T, R]) pass() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		b.busy = false
		return
	}
	close(b.waiting[0].turn)
}
