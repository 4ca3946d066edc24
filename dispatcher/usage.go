package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringback/ringback/store"
)

const (
	// countEvery is the time between two counts of what a namespace uses, while it registers jobs. A count that takes
	// long is repeated after countShare times its duration.
	countEvery = time.Second
	countShare = 10
	// countKept is how long registrations go on with the last count while counts fail, and how old it may be for one
	// that stays below half the quota. They do not exceed the quota by it: what this process has registered since is
	// added.
	countKept = time.Minute
	// countTimeout bounds a count, and countPause is the pause after one that failed.
	countTimeout = 10 * time.Second
	countPause   = time.Second
	// unansweredFor is how long a registration without an answer may still take effect: the router's timeout of an
	// insertion, and then some for a command that the store has already received.
	unansweredFor = 15 * time.Second
)

// A usage is what a namespace uses of its quota, as far as this process knows: what the store counted, and the
// registrations of this process that the count may not include.
type usage struct {
	count func(ctx context.Context) (store.Usage, error)

	mu         sync.Mutex
	counted    store.Usage
	countedAt  time.Time     // when the count began; zero: there was none
	took       time.Duration // of the count
	reserved   store.Usage   // by registrations in flight
	registered store.Usage   // since countedAt
	unanswered []unanswered  // oldest first
	flight     *countFlight  // the count in flight, or the last one
	failing    bool          // the last count that ended failed
}

// unanswered are registrations of which it is not known whether they take effect.
type unanswered struct {
	store.Usage
	until time.Time // when they no longer can
}

// A countFlight is one count, shared by all registrations that wait for it.
type countFlight struct {
	began, ended time.Time   // zero before that
	registered   store.Usage // since began
	done         chan struct{}
	err          error // valid after done is closed
}

// A room is the answer to a reservation: how many jobs have room, from the first, what they use, the name of the quota
// that the next one exceeds, and what was used before.
type room struct {
	jobs  int
	size  store.Usage
	short string
	used  store.Usage
}

// The names of quotas.
const (
	quotaPending   = "pending"
	quotaBytes     = "bytes"
	quotaKeptBytes = "kept_bytes"
)

// reserve reserves room for the first of some jobs within limits, of which zero is none: for all or none of them with
// whole. Fewer than all have room only by a count that is at most countEvery old and, unless counts take long, began
// after since; or by the last one if counts fail. release must follow.
func (u *usage) reserve(
	ctx context.Context, limits store.Usage, sizes []store.Usage, whole bool, since time.Time,
) (r room, err error) {
	err = u.await(ctx, func() (wait *countFlight) {
		r, wait = u.tryReserve(limits, sizes, whole, since)
		return wait
	})
	return r, err
}

// latest returns what a count says that is as recent as those of reserve.
func (u *usage) latest(ctx context.Context) (counted store.Usage, err error) {
	err = u.await(ctx, func() *countFlight {
		u.mu.Lock()
		defer u.mu.Unlock()
		if time.Since(u.countedAt) <= max(countEvery, countShare*u.took) {
			counted = u.counted
			return nil
		}
		u.beginCount()
		return u.flight
	})
	return counted, err
}

// await calls try until it returns no count to wait for.
func (u *usage) await(ctx context.Context, try func() *countFlight) error {
	for waited := (*countFlight)(nil); ; {
		wait := try()
		switch wait {
		case nil:
			return nil
		case waited: // it failed, and no count is recent enough
			return fmt.Errorf("count the use of the namespace: %w", wait.err)
		}
		select {
		case <-wait.done:
			waited = wait
		case <-ctx.Done():
			return fmt.Errorf("count the use of the namespace: %w", context.Cause(ctx))
		}
	}
}

// tryReserve is reserve by what was counted before, or returns the count to wait for.
func (u *usage) tryReserve(
	limits store.Usage, sizes []store.Usage, whole bool, since time.Time,
) (room, *countFlight) {
	u.mu.Lock()
	defer u.mu.Unlock()
	age, every := time.Since(u.countedAt), max(countEvery, countShare*u.took)
	used := u.used()
	r := fit(used, limits, sizes)
	isLate := r.short != "" && (age > every || every == countEvery && u.countedAt.Before(since))
	if age > every || isLate {
		u.beginCount()
	}
	switch {
	case age > max(countKept, 2*every):
		return room{}, u.flight
	case !u.failing && isLate:
		return room{}, u.flight
	case !u.failing && age > 2*every && !isBelowHalf(used.Add(r.size), limits):
		return room{}, u.flight
	case r.short != "" && whole:
		return room{}, nil
	}
	u.reserved = u.reserved.Add(r.size)
	return r, nil
}

// used returns what the namespace uses at most, as far as this process knows.
func (u *usage) used() store.Usage {
	used := u.counted.Add(u.reserved).Add(u.registered)
	for _, l := range u.unanswered {
		used = used.Add(l.Usage)
	}
	return used
}

// isBelowHalf reports whether a usage is below half of each limit.
func isBelowHalf(used, limits store.Usage) bool {
	return (limits.Jobs == 0 || used.Jobs < limits.Jobs/2) && (limits.Bytes == 0 || used.Bytes < limits.Bytes/2) &&
		(limits.KeptBytes == 0 || used.KeptBytes < limits.KeptBytes/2)
}

// fit returns the room for jobs beside what is used. What does not grow always has room.
func fit(used, limits store.Usage, sizes []store.Usage) (r room) {
	r.used = used
	for _, size := range sizes {
		next := r.size.Add(size)
		switch {
		case limits.Jobs > 0 && size.Jobs > 0 && used.Jobs+next.Jobs > limits.Jobs:
			r.short = quotaPending
			return r
		case limits.Bytes > 0 && size.Bytes > 0 && used.Bytes+next.Bytes > limits.Bytes:
			r.short = quotaBytes
			return r
		case limits.KeptBytes > 0 && used.KeptBytes >= limits.KeptBytes:
			r.short = quotaKeptBytes
			return r
		}
		r.jobs, r.size = r.jobs+1, next
	}
	return r
}

// release ends a reservation, after the answer of the store: some jobs were registered, of some it is not known.
func (u *usage) release(reserved, registered, unknown store.Usage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reserved = u.reserved.Sub(reserved)
	u.registered = u.registered.Add(registered)
	if f := u.flight; f != nil && f.ended.IsZero() {
		f.registered = f.registered.Add(registered)
	}
	if unknown == (store.Usage{}) {
		return
	}
	until := time.Now().Add(unansweredFor)
	if last := len(u.unanswered) - 1; last >= 0 && !until.After(u.unanswered[last].until) {
		u.unanswered[last].Usage = u.unanswered[last].Add(unknown)
		return
	}
	u.unanswered = append(u.unanswered, unanswered{unknown, until.Add(time.Second)}) // those of a second share an entry
}

// beginCount begins a count in the background, unless one is in flight or has just failed. Counts take at most a part
// of the time, also where each waits for the next one: that begins countShare times the duration of the last one after
// it.
func (u *usage) beginCount() {
	if f := u.flight; f != nil && (f.ended.IsZero() || f.err != nil && time.Since(f.ended) < countPause) {
		return
	}
	f := &countFlight{done: make(chan struct{})}
	u.flight = f
	pause := countShare*u.took - time.Since(u.countedAt)
	go func() {
		time.Sleep(pause)
		u.mu.Lock()
		f.began, f.registered = time.Now(), store.Usage{}
		u.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
		defer cancel()
		counted, err := u.count(ctx)
		if err != nil && ctx.Err() != nil && !errors.Is(err, store.ErrUnavailable) {
			err = &store.UnavailableError{Reason: "the store did not answer in time", Err: err}
		}
		u.endCount(f, counted, err)
	}()
}

// endCount ends a count. What was registered while it ran may be counted twice until the next one.
func (u *usage) endCount(f *countFlight, counted store.Usage, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer close(f.done)
	f.ended, f.err, u.failing = time.Now(), err, err != nil
	if err != nil {
		return
	}
	u.counted, u.countedAt, u.took, u.registered = counted, f.began, f.ended.Sub(f.began), f.registered
	over := 0
	for over < len(u.unanswered) && u.unanswered[over].until.Before(f.began) {
		over++
	}
	u.unanswered = u.unanswered[over:]
}
