package documents

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/store"
)

const (
	// MaxAge is the age from which one Get reloads the cache. From twice the age on all wait for the load, for at most
	// patience. So a change is seen everywhere within 2*MaxAge + patience = 5 s, unless the store cannot be read.
	MaxAge   = 2 * time.Second
	patience = time.Second
	// loadTimeout bounds a load.
	loadTimeout = 5 * time.Second
	// retryAfter is the pause after a load that failed.
	retryAfter = time.Second
)

// Options configure a Cache.
type Options[T any] struct {
	Settings store.Settings
	Kind     string
	// Decode returns the value of a document. old is the value of an earlier revision, or zero. Documents with an error are
	// left out of the cache.
	Decode func(doc store.Document, old T) (T, error)
	Logger *slog.Logger
}

// Cache caches the documents of one kind by name. The names must be unique in all namespaces. It is safe for concurrent use.
type Cache[T any] struct {
	Options[T]

	cached atomic.Pointer[Set[T]]
	failed atomic.Bool // the last load
	mu     sync.Mutex  // guards the rest
	flight *flight     // the load in flight, or the last one
}

// A Set is an immutable snapshot of all documents of the kind.
type Set[T any] struct {
	Values map[string]T // by name

	loadedAt  time.Time // when the load began
	revisions map[string]int64
}

// Revision returns the revision of a document.
func (s *Set[T]) Revision(name string) int64 { return s.revisions[name] }

// A flight is one load, shared by all callers that wait for it.
type flight struct {
	began, ended time.Time // ended is zero while it runs
	done         chan struct{}
	err          error // valid after done is closed, as abandoned
	abandoned    bool  // the context of its caller ended
}

// New returns an empty Cache.
func New[T any](o Options[T]) *Cache[T] { return &Cache[T]{Options: o} }

// Get returns the documents, reloaded if they are too old. One caller loads. The others use the cache, unless it is older than
// 2*MaxAge. An error is returned only if the documents were never loaded.
func (c *Cache[T]) Get(ctx context.Context) (*Set[T], error) {
	set := c.cached.Load()
	if set == nil {
		return c.Reload(ctx)
	}
	age := time.Since(set.loadedAt)
	if age <= MaxAge {
		return set, nil
	}
	f, mine := c.begin(retryAfter)
	switch {
	case mine:
		_ = c.load(ctx, f, patience) // on an error the cache is used as it is
	case f == nil || age <= 2*MaxAge || c.failed.Load():
		return set, nil
	default:
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_ = f.wait(ctx)
	}
	return c.cached.Load(), nil
}

// Cached returns the documents as they were loaded last. Only the first call loads them: Keep reloads them.
func (c *Cache[T]) Cached(ctx context.Context) (*Set[T], error) {
	if set := c.cached.Load(); set != nil {
		return set, nil
	}
	return c.Reload(ctx)
}

// Keep reloads the documents every MaxAge from their first load on, until ctx ends.
func (c *Cache[T]) Keep(ctx context.Context) {
	tick := time.NewTicker(MaxAge)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c.cached.Load() != nil {
			_, _ = c.Reload(ctx) // logged; the next tick retries
		}
	}
}

// Reload returns the documents as they are in the store now. Concurrent callers share one load that began after all of them
// called.
func (c *Cache[T]) Reload(ctx context.Context) (*Set[T], error) {
	for asked := time.Now(); ; {
		f, mine := c.begin(0)
		var err error
		if mine {
			err = c.load(ctx, f, loadTimeout)
		} else {
			err = f.wait(ctx)
		}
		if err != nil && ctx.Err() != nil {
			return nil, &store.UnavailableError{Reason: "the store did not answer in time", Err: context.Cause(ctx)}
		}
		if !f.began.Before(asked) && !f.abandoned {
			return c.cached.Load(), err
		}
	}
}

// wait waits for the end of a load, and returns its error or the cause of the context's end.
func (f *flight) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// begin returns the load in flight, or a new one that the caller must load. For a pause after a failure it returns nil.
func (c *Cache[T]) begin(pause time.Duration) (f *flight, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flight; f != nil {
		if f.ended.IsZero() {
			return f, false
		}
		if f.err != nil && !f.abandoned && time.Since(f.ended) < pause {
			return nil, false
		}
	}
	c.flight = &flight{began: time.Now(), done: make(chan struct{})}
	return c.flight, true
}

// load reads the documents for all callers that wait for it.
func (c *Cache[T]) load(ctx context.Context, f *flight, within time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := c.read(limited, f.began)
	abandoned := err != nil && ctx.Err() != nil // the caller has left, which is not the store's fault
	if !abandoned {
		if err != nil && !c.failed.Load() {
			c.Logger.Warn("reloading settings failed, using cached ones", "kind", c.Kind, "err", err)
		}
		c.failed.Store(err != nil)
	}
	c.mu.Lock()
	f.err, f.abandoned, f.ended = err, abandoned, time.Now()
	c.mu.Unlock()
	close(f.done)
	return err
}

// read reads all documents.
func (c *Cache[T]) read(ctx context.Context, began time.Time) error {
	docs, _, err := c.Settings.ListDocuments(ctx, store.DocumentKey{Kind: c.Kind}, 0)
	if err != nil {
		return err
	}
	old := c.cached.Load()
	set := &Set[T]{Values: make(map[string]T, len(docs)), loadedAt: began, revisions: make(map[string]int64, len(docs))}
	for _, doc := range docs {
		name := doc.Key.Name
		var before T
		if old != nil {
			before = old.Values[name]
		}
		if old != nil && old.revisions[name] == doc.Revision {
			set.Values[name] = before
		} else if set.Values[name], err = c.Decode(doc, before); err != nil {
			c.Logger.Error("stored settings not readable, leaving them out", "kind", c.Kind, "name", name, "err", err)
			delete(set.Values, name)
			continue
		}
		set.revisions[name] = doc.Revision
	}
	c.cached.Store(set)
	return nil
}
