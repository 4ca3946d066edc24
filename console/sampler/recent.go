package sampler

import (
	"context"
	"sync"
	"time"
)

const (
	// reuse is how many times as long as it took an answer is used again: readers cause at most that part of the time's load.
	reuse = 50
	// longestReuse bounds the age of an answer, apart from the time that it takes.
	longestReuse = 10 * time.Second
)

// Recent has the last answers to requests that take long where there is much to look at, by key, so that many readers cost what one
// does. An answer that took 20 ms is used for one second, one of 1 ms nearly not at all. The zero value has none. It is safe for
// concurrent use.
type Recent[T any] struct {
	mu  sync.Mutex
	all map[string]*recent[T]
}

// recent is an answer.
type recent[T any] struct {
	value    T
	at       time.Time     // when it was requested
	keep     time.Duration // from then on
	renewing bool
}

// Read returns the last answer while it is recent for what it took, or else what read returns, and when that was requested. While
// somebody renews an answer, the others still get it for a while.
func (r *Recent[T]) Read(ctx context.Context, key string, read func(context.Context) (T, error)) (value T, at time.Time, err error) {
	began := time.Now()
	r.mu.Lock()
	known := r.all[key]
	if known != nil {
		if age := began.Sub(known.at); age < known.keep || known.renewing && age < 2*known.keep {
			r.mu.Unlock()
			return known.value, known.at, nil
		}
		known.renewing = true
	}
	r.mu.Unlock()
	value, err = read(ctx)
	took := time.Since(began)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if known != nil {
			known.renewing = false
		}
		return value, began, err
	}
	if _, renews := r.all[key]; r.all == nil || !renews && len(r.all) >= MaxAudiences {
		r.all = make(map[string]*recent[T])
	}
	r.all[key] = &recent[T]{value: value, at: began, keep: took + min(reuse*took, longestReuse)}
	return value, began, nil
}
