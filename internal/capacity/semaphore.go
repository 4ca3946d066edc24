package capacity

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// Holder is the namespace and the store that a request is for.
type Holder struct {
	// Namespace is empty while it is not known: then no share bounds the holder.
	Namespace string
	// Store is empty if the process has one store only, or if stores need no share.
	Store string
}

// keys returns the keys by which a holder is counted.
func (h Holder) keys() [2]key { return [2]key{{name: h.Namespace}, {h.Store, true}} }

type key struct {
	name    string
	ofStore bool
}

// Semaphore bounds the units in use: all of them, and those of each namespace and store by the Threshold of the limit's
// weight. Make one with Limit.Semaphore.
type Semaphore struct {
	limit *Limit
	whole int
	in    *Semaphore // of which it is a part
	total int
	held  map[key]int
	*queue
}

// queue is shared by a Semaphore and its parts.
type queue struct {
	mu      sync.Mutex // guards the counts, too
	waiting []*waiter  // in order of their turns
}

// waiter is a call of Acquire that waits.
type waiter struct {
	of      *Semaphore
	holder  Holder
	n       int
	granted chan struct{} // closed when it has what it waits for
}

// Semaphore returns a Semaphore with a bound of whole, from 1; zero: that of the limit.
func (l *Limit) Semaphore(whole int) *Semaphore {
	if whole == 0 {
		whole = l.Whole
	}
	return &Semaphore{limit: l, whole: whole, held: make(map[key]int), queue: &queue{}}
}

// Part returns a Semaphore with a lower bound. Its units count in s, too, whose rest it leaves to others.
func (s *Semaphore) Part(l *Limit, whole int) *Semaphore {
	return &Semaphore{limit: l, whole: whole, in: s, held: make(map[key]int), queue: s.queue}
}

// Whole returns the bound.
func (s *Semaphore) Whole() int { return s.whole }

// InUse returns the units in use.
func (s *Semaphore) InUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// TryAcquire acquires n, from 1, without waiting. Error: *FullError.
func (s *Semaphore) TryAcquire(h Holder, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusal(h, n); err != nil {
		return err
	}
	s.add(h, n)
	return nil
}

// CheckRoom returns the error that TryAcquire would return.
func (s *Semaphore) CheckRoom(h Holder, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal(h, n)
}

// Acquire acquires n, from 1 to Whole, and waits for it until ctx ends. Of those that wait, the one whose namespace
// holds least is next. Namespaces that hold as much take turns. Error: *FullError, or the cause if ctx was canceled.
func (s *Semaphore) Acquire(ctx context.Context, h Holder, n int) error {
	w := &waiter{of: s, holder: h, n: n, granted: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.grant()
	s.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.waiting, w)
	if at < 0 { // it was granted meanwhile
		return nil
	}
	err := s.refusal(h, n)
	s.waiting = slices.Delete(s.waiting, at, at+1)
	s.grant() // others may have waited for its turn
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	return cmp.Or(err, error(&FullError{Limit: s.limit, whole: s.whole})) // without err another one was next
}

// Release gives n back.
func (s *Semaphore) Release(h Holder, n int) { s.Force(h, -n) }

// Force acquires n even beyond the bound; a negative n is given back.
func (s *Semaphore) Force(h Holder, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(h, n)
	if n < 0 {
		s.grant()
	}
}

// Assign passes n from one holder on to another. With an error, a *FullError, they stay with the first.
func (s *Semaphore) Assign(from, to Holder, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(from, -n)
	err := s.refusal(to, n)
	if err == nil {
		from = to
	}
	s.add(from, n)
	return err
}

// refusal returns the reason why a holder may not have n more; nil: it may. The caller holds the mutex.
func (s *Semaphore) refusal(h Holder, n int) error {
	return cmp.Or(s.checkWhole(n), s.checkShare(h, n))
}

// checkWhole returns an error if all together may not have n more.
func (s *Semaphore) checkWhole(n int) error {
	for ; s != nil; s = s.in {
		if s.total+n > s.whole {
			return &FullError{Limit: s.limit, whole: s.whole}
		}
	}
	return nil
}

// checkShare returns an error if the namespace or the store of a holder may not have n more. One that holds nothing may
// have any number.
func (s *Semaphore) checkShare(h Holder, n int) error {
	for ; s != nil; s = s.in {
		for _, k := range h.keys() {
			used := s.held[k]
			if k.name != "" && used > 0 &&
				float64(used+n-1) >= max(1, Threshold(s.whole-s.total-n+1, s.whole, s.limit.Weight)) {
				return &FullError{Limit: s.limit, whole: s.whole, held: used, of: k}
			}
		}
	}
	return nil
}

func (s *Semaphore) add(h Holder, n int) {
	for ; s != nil; s = s.in {
		s.total += n
		for _, k := range h.keys() {
			if k.name == "" {
				continue
			}
			if held := s.held[k] + n; held == 0 {
				delete(s.held, k)
			} else {
				s.held[k] = held
			}
		}
	}
}

// grant serves those that wait until there is no room for the next. The others of its namespace go behind those that
// wait already. The caller holds the mutex.
func (q *queue) grant() {
	for {
		next := -1
		for i, w := range q.waiting {
			if w.of.checkShare(w.holder, w.n) == nil && (next < 0 || w.held() < q.waiting[next].held()) {
				next = i
			}
		}
		if next < 0 || q.waiting[next].of.checkWhole(q.waiting[next].n) != nil {
			return
		}
		w := q.waiting[next]
		var later []*waiter
		q.waiting = slices.DeleteFunc(slices.Delete(q.waiting, next, next+1), func(o *waiter) bool {
			isLater := o.holder.Namespace == w.holder.Namespace
			if isLater {
				later = append(later, o)
			}
			return isLater
		})
		q.waiting = append(q.waiting, later...)
		w.of.add(w.holder, w.n)
		close(w.granted)
	}
}

// held returns what the namespace of a waiter holds.
func (w *waiter) held() int { return w.of.held[key{name: w.holder.Namespace}] }
