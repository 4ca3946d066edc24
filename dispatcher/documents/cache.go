package documents

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/store"
)

const (
	// reloadTimeout bounds a load whose caller needs the current documents, syncTimeout one whose caller can use the
	// cache.
	reloadTimeout = 5 * time.Second
	syncTimeout   = time.Second
	// retryLoadAfter is the pause after a load failed. Its callers go on with the cache.
	retryLoadAfter = time.Second
	// rollbackAge is the age from which Sync reloads documents that are newer than the revision.
	rollbackAge = time.Second
	// AnyAge is the maximum age of a snapshot that is reloaded only if the documents were never loaded.
	AnyAge time.Duration = math.MaxInt64
)

// Options configure a Cache.
type Options[T any] struct {
	Settings store.Settings
	Kind     string
	// Decode returns the value of a document. old is the value of an earlier revision, or zero. Documents with an error
	// are left out of the cache.
	Decode func(doc store.Document, old T) (T, error)
	Logger *slog.Logger
}

// Cache caches the documents of one kind. It is safe for concurrent use.
type Cache[T any] struct {
	opts Options[T]

	cached      atomic.Pointer[Set[T]]
	loading     ctxMutex
	lastFailure atomic.Pointer[loadFailure] // of the last load; nil: it succeeded. Guarded by loading for writes
}

// A loadFailure is the error of a load.
type loadFailure struct {
	at  time.Time
	err error
}

// A Name is the name of a document in a namespace, of a lane's settings with the lane.
type Name struct{ Namespace, Name, Lane string }

// A Set is an immutable snapshot of all documents of the kind.
type Set[T any] struct {
	Values   map[Name]T
	LoadedAt time.Time // when the load began

	revision  int64 // -1: the documents were never loaded
	revisions map[Name]int64
}

// Get returns the value of a document; zero: there is none.
func (s *Set[T]) Get(namespace, name string) T {
	return s.Values[Name{Namespace: namespace, Name: name}]
}

// Revision is that of the newest document; -1: none were ever loaded.
func (s *Set[T]) Revision() int64 { return s.revision }

// New returns an empty Cache.
func New[T any](opts Options[T]) *Cache[T] {
	c := &Cache[T]{opts: opts, loading: newCtxMutex()}
	c.cached.Store(&Set[T]{revision: -1})
	return c
}

// Loaded returns the documents as they were loaded last. It takes no lock.
func (c *Cache[T]) Loaded() *Set[T] { return c.cached.Load() }

// Snapshot returns the documents, reloaded if they are older than maxAge. One caller loads. The rest use the cache, but
// wait for syncTimeout if it is older than two maxAge. So a change is seen within 2*maxAge + syncTimeout, unless the
// load fails: then all use the cache. An error is returned only if the documents were never loaded.
func (c *Cache[T]) Snapshot(ctx context.Context, maxAge time.Duration) (*Set[T], error) {
	set := c.cached.Load()
	age := time.Since(set.LoadedAt)
	if set.revision >= 0 && age <= maxAge {
		return set, nil
	}
	failure := c.recentFailure()
	switch {
	case set.revision < 0 && failure != nil:
		return set, failure.err
	case set.revision < 0:
		return c.Reload(ctx)
	case failure != nil:
		return set, nil
	}
	patience := syncTimeout
	if age/2 <= maxAge || c.lastFailure.Load() != nil {
		patience = 0
	}
	if !c.loading.tryLockFor(ctx, patience) {
		return set, nil
	}
	defer c.loading.unlock()
	if set = c.cached.Load(); time.Since(set.LoadedAt) > maxAge && c.recentFailure() == nil {
		set, _ = c.load(ctx, syncTimeout)
	}
	return set, nil
}

// Sync reloads the documents if the cache is older than the revision, and reports whether it is as new now. It does not
// wait for a load in progress.
//
// A lower revision than the cached one comes from a delayed reply, or from a shard that has not got the change yet. If
// it persists, a fault of the store has rolled documents back. So they are reloaded every rollbackAge.
func (c *Cache[T]) Sync(ctx context.Context, revision int64) bool {
	if c.isCurrent(revision) {
		return true
	}
	if !c.loading.tryLock() {
		return c.cached.Load().revision > revision
	}
	defer c.loading.unlock()
	if c.isCurrent(revision) {
		return true
	}
	if c.recentFailure() != nil {
		return false
	}
	set, err := c.load(ctx, syncTimeout)
	return err == nil && set.revision >= revision
}

// isCurrent reports whether the cache need not be reloaded for a revision of the store.
func (c *Cache[T]) isCurrent(revision int64) bool {
	set := c.cached.Load()
	return set.revision == revision || set.revision > revision && time.Since(set.LoadedAt) < rollbackAge
}

// Keep reloads the documents at an interval from their first load on, until ctx ends.
func (c *Cache[T]) Keep(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c.cached.Load().revision >= 0 {
			_, _ = c.Reload(ctx) // logged; the next tick retries
		}
	}
}

// Reload returns all documents as they are in the store now. Concurrent callers share one load that began after all of
// them called, and its failure, so that an unresponsive store delays each of them once. With an error it returns the
// cached ones.
func (c *Cache[T]) Reload(ctx context.Context) (*Set[T], error) {
	asked := time.Now()
	if err := c.loading.lock(ctx); err != nil {
		return c.cached.Load(), &store.UnavailableError{Reason: "the store did not answer in time", Err: err}
	}
	defer c.loading.unlock()
	set := c.cached.Load()
	if set.LoadedAt.After(asked) {
		return set, nil
	}
	if f := c.lastFailure.Load(); f != nil && f.at.After(asked) {
		return set, f.err
	}
	if err := ctx.Err(); err != nil { // ended with the wait
		return set, &store.UnavailableError{Reason: "the store did not answer in time", Err: err}
	}
	return c.load(ctx, reloadTimeout)
}

// load reads the documents; with an error it returns the cached ones. It records a failure, and logs the first one,
// unless ctx has ended, which is not the store's fault. The caller holds loading.
func (c *Cache[T]) load(ctx context.Context, within time.Duration) (*Set[T], error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	old := c.cached.Load()
	set, err := c.read(limited, old)
	if err != nil {
		if ctx.Err() == nil {
			if c.lastFailure.Load() == nil {
				c.opts.Logger.Warn("reloading settings failed, using cached ones", "kind", c.opts.Kind, "err", err)
			}
			c.lastFailure.Store(&loadFailure{at: time.Now(), err: err})
		}
		return old, err
	}
	c.cached.Store(set)
	c.lastFailure.Store(nil)
	return set, nil
}

// read reads what has changed, and decodes the documents with another revision.
func (c *Cache[T]) read(ctx context.Context, old *Set[T]) (*Set[T], error) {
	set := &Set[T]{Values: old.Values, LoadedAt: time.Now(), revisions: old.revisions}
	changes, err := c.opts.Settings.ListChanges(ctx, c.opts.Kind, old.revision)
	if err != nil {
		return nil, err
	}
	set.revision = changes.Revision
	switch {
	case changes.Revision == old.revision:
		return set, nil
	case changes.IsComplete:
		set.Values, set.revisions = make(map[Name]T), make(map[Name]int64)
	default:
		set.Values, set.revisions = maps.Clone(old.Values), maps.Clone(old.revisions)
	}
	for _, doc := range changes.Documents {
		name := Name{doc.Key.Namespace, doc.Key.Name, doc.Key.Lane}
		value := old.Values[name]
		delete(set.Values, name)
		delete(set.revisions, name)
		if doc.Revision == 0 {
			continue
		}
		if old.revisions[name] != doc.Revision {
			if value, err = c.opts.Decode(doc, value); err != nil {
				c.opts.Logger.Error("stored settings not readable, leaving them out", "kind", c.opts.Kind, "name",
					doc.Key.Name, "err", err)
				continue
			}
		}
		set.Values[name], set.revisions[name] = value, doc.Revision
	}
	return set, nil
}

// recentFailure returns the failure of the last load, if that was less than retryLoadAfter ago.
func (c *Cache[T]) recentFailure() *loadFailure {
	if f := c.lastFailure.Load(); f != nil && time.Since(f.at) < retryLoadAfter {
		return f
	}
	return nil
}
