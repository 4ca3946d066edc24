package recent

import (
	"context"
	"sync"
	"time"
)

const (
	// reuse is how many times as long as it took an answer is used again: readers cause at most that part of the time's
	// load.
	reuse = 50
	// longestReuse bounds the age of an answer, apart from the time that it takes.
	longestReuse = 10 * time.Second
)

// Cache has the last answers to requests that take long where there is much to look at, by key, so that many
// readers cost what one does. An answer that took 20 ms is used for one second, one of 1 ms nearly not at all. The zero
// value has none. It is safe for concurrent use.
type Cache[T any] struct {
	mu  sync.Mutex
	all map[string]*cachedAnswer[T]
}

// cachedAnswer is an answer, or a request for one.
type cachedAnswer[T any] struct {
	value  T
	failed bool
	at     time.Time     // when it was requested
	maxAge time.Duration // from then on
	done   chan struct{} // closed when it is there
}

// isDone reports whether the answer is there.
func (a *cachedAnswer[T]) isDone() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// Read returns the last answer while it is recent for what it took, or else what read returns, and when that was
// requested. While somebody reads, the others wait for that answer. An error is that of its reader alone: the next one
// tries again.
func (c *Cache[T]) Read(
	ctx context.Context, key string, read func(context.Context) (T, error),
) (value T, at time.Time, err error) {
	for {
		a, isMine := c.join(key)
		if isMine {
			failed := true
			defer func() { c.end(a, value, failed) }() // also of a read that panics: others wait
			value, err = read(ctx)
			failed = err != nil
			return value, a.at, err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return value, time.Now(), ctx.Err()
		}
		if !a.failed {
			return a.value, a.at, nil
		}
	}
}

// join returns the answer of a key that can be used, or that somebody requests; or a new one, which the caller has to
// request.
func (c *Cache[T]) join(key string) (a *cachedAnswer[T], isMine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.all[key]; a != nil && (!a.isDone() || time.Since(a.at) < a.maxAge) {
		return a, false
	}
	if _, renews := c.all[key]; c.all == nil || !renews && len(c.all) >= MaxKeys {
		c.all = make(map[string]*cachedAnswer[T])
	}
	a = &cachedAnswer[T]{at: time.Now(), done: make(chan struct{})}
	c.all[key] = a
	return a, true
}

// end says that a request has ended.
func (c *Cache[T]) end(a *cachedAnswer[T], value T, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.value, a.failed = value, failed
	if took := time.Since(a.at); !failed {
		a.maxAge = took + min(reuse*took, longestReuse)
	}
	close(a.done)
}
