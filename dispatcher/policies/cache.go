package policies

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/dispatcher/secrets"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Options configures a Cache.
type Options struct {
	Settings store.Settings
	// Defaults completes the policies.
	Defaults policy.Topic
	// OpenCredentials returns a topic's credentials; nil: none.
	OpenCredentials func(store.Topic) *secrets.Credentials
	// NoClaims is set in a process without claims, which sees no new revision.
	NoClaims bool
	Logger   *slog.Logger
}

// Cache caches the policies of topics. It is safe for concurrent use.
type Cache struct {
	settings        store.Settings
	log             *slog.Logger
	openCredentials func(store.Topic) *secrets.Credentials
	maxAge          time.Duration // of Cached
	defaults        Topic         // of topics without a stored policy

	cached      atomic.Pointer[Set]
	loading     ctxMutex
	lastFailure atomic.Pointer[loadFailure] // of the last load; nil: it succeeded. Guarded by loading for writes
}

// A loadFailure is the error of a load.
type loadFailure struct {
	at  time.Time
	err error
}

// A Name is the name of a topic in a namespace.
type Name struct{ Namespace, Topic string }

// A Set is an immutable snapshot of all stored policies.
type Set struct {
	LoadedAt time.Time
	Topics   map[Name]*Topic

	revision int64 // -1: the policies were never loaded
}

// Topic returns a stored policy; nil: there is none.
func (s *Set) Topic(namespace, name string) *Topic { return s.Topics[Name{namespace, name}] }

// A Topic is a topic's policy.
type Topic struct {
	Stored      store.Topic
	Resolved    policy.Topic         // with defaults applied
	Credentials *secrets.Credentials // nil: none
}

const (
	// reloadTimeout bounds a load whose caller needs the current policies, syncTimeout one whose caller can use the cache.
	reloadTimeout = 5 * time.Second
	syncTimeout   = time.Second
	// refreshAfter is the age at which Refresh reloads: a topic's rate may keep the process from claiming.
	refreshAfter = 5 * time.Second
	// retryLoadAfter is the pause after a load failed. Claims and registrations go on with the cache.
	retryLoadAfter = time.Second
	// noClaimsMaxAge is the maximum age of the cache in a process without claims, or while claims report an older revision.
	noClaimsMaxAge = time.Second
	// AnyAge is the maximum age of a snapshot that is reloaded only if the policies were never loaded.
	AnyAge time.Duration = math.MaxInt64
)

// New returns a Cache, without loading the policies.
func New(opts Options) *Cache {
	c := &Cache{
		settings: opts.Settings, log: opts.Logger, openCredentials: opts.OpenCredentials, maxAge: AnyAge,
		defaults: Topic{Resolved: opts.Defaults}, loading: newCtxMutex(),
	}
	if opts.NoClaims {
		c.maxAge = noClaimsMaxAge
	}
	c.cached.Store(&Set{revision: -1})
	return c
}

// Get returns a topic's cached policy; the defaults if it has none. It takes no lock.
func (c *Cache) Get(namespace, name string) *Topic {
	if t := c.cached.Load().Topic(namespace, name); t != nil {
		return t
	}
	return &c.defaults
}

// Snapshot returns the policies, reloaded if they are older than maxAge. One caller loads. The rest use the cache, but wait
// for syncTimeout if it is older than two maxAge. If the load fails, all use the cache: the next write to the store reports
// the fault. An error is returned only if the policies were never loaded.
func (c *Cache) Snapshot(ctx context.Context, maxAge time.Duration) (*Set, error) {
	set := c.cached.Load()
	failure := c.recentFailure()
	switch {
	case set.revision < 0 && failure != nil:
		return set, failure.err
	case set.revision < 0:
		return c.Reload(ctx)
	case time.Since(set.LoadedAt) <= maxAge || failure != nil:
		return set, nil
	}
	patience := syncTimeout
	if time.Since(set.LoadedAt)/2 <= maxAge || c.lastFailure.Load() != nil {
		patience = 0
	}
	if !c.loading.tryLockFor(ctx, patience) {
		return set, nil
	}
	defer c.loading.unlock()
	if set = c.cached.Load(); time.Since(set.LoadedAt) > maxAge && c.recentFailure() == nil {
		set, _ = c.loadOrUseCache(ctx)
	}
	return set, nil
}

// Cached returns the policies for a registration: in a process without claims at most a second old.
func (c *Cache) Cached(ctx context.Context) (*Set, error) { return c.Snapshot(ctx, c.maxAge) }

// Resolve returns a topic's policy with defaults applied. A process without claims reloads it as Refresh does.
func (c *Cache) Resolve(ctx context.Context, namespace, name string) policy.Topic {
	_, _ = c.Snapshot(ctx, max(refreshAfter, c.maxAge)) // with an error the cache or the defaults apply
	return c.Get(namespace, name).Resolved
}

// Current returns a topic's policy as it is in the store now. It reads the topic's document, and reloads the cache if that has
// changed.
func (c *Cache) Current(ctx context.Context, namespace, name string) (*Topic, error) {
	docs, err := c.settings.GetDocuments(ctx, []store.DocumentKey{{Kind: store.KindTopic, Namespace: namespace, Name: name}})
	if err != nil {
		return nil, fmt.Errorf("read the policy of topic %s: %w", name, err)
	}
	if t := c.Get(namespace, name); t.Stored.Revision == docs[0].Revision {
		return t, nil
	}
	if _, err := c.Reload(ctx); err != nil {
		return nil, err
	}
	return c.Get(namespace, name), nil
}

// Refresh reloads policies that are older than refreshAfter.
func (c *Cache) Refresh(ctx context.Context) { _, _ = c.Snapshot(ctx, refreshAfter) }

// Sync reloads the policies if the cache is older than the revision, and reports whether it is as new now. It does not wait
// for a load in progress.
//
// A lower revision than the cached one comes from a delayed reply, or from a shard that has not got the change yet. If it
// persists, a fault of the store has rolled policies back. So they are reloaded every noClaimsMaxAge.
func (c *Cache) Sync(ctx context.Context, revision int64) bool {
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
	set, err := c.loadOrUseCache(ctx)
	return err == nil && set.revision >= revision
}

// isCurrent reports whether the cache need not be reloaded for a revision of the store.
func (c *Cache) isCurrent(revision int64) bool {
	set := c.cached.Load()
	return set.revision == revision || set.revision > revision && time.Since(set.LoadedAt) < noClaimsMaxAge
}

// LoadFirst loads the policies, and retries until it succeeds: without them, jobs would be judged by default policies. It
// returns false if ctx ends first.
func (c *Cache) LoadFirst(ctx context.Context) bool {
	var again store.Backoff
	for {
		_, err := c.Reload(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		c.log.Warn("loading topic policies failed, retrying; deliveries start afterwards", "err", err)
		if !again.Wait(ctx) {
			return false
		}
	}
}

// Reload returns all policies as they are in the store now. Concurrent callers share one load that began after all of them
// called, and its failure, so that an unresponsive store delays each of them once. With an error it returns the cached ones.
func (c *Cache) Reload(ctx context.Context) (*Set, error) {
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
	return c.load(ctx, reloadTimeout)
}

// loadOrUseCache is load for a caller that can use the cache.
func (c *Cache) loadOrUseCache(ctx context.Context) (*Set, error) {
	set, err := c.load(ctx, syncTimeout)
	if err != nil && ctx.Err() == nil {
		c.log.Warn("reloading topic policies failed, using cached ones", "err", err)
	}
	return set, err
}

// load reads all policies; with an error it returns the cached ones. It records a failure unless ctx has ended, which is not
// the store's fault. The caller holds loading.
func (c *Cache) load(ctx context.Context, within time.Duration) (*Set, error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	read := time.Now()
	old := c.cached.Load()
	docs, revision, err := c.settings.ListDocuments(limited, store.DocumentKey{Kind: store.KindTopic}, 0)
	if err != nil {
		if ctx.Err() == nil {
			c.lastFailure.Store(&loadFailure{at: time.Now(), err: err})
		}
		return old, err
	}
	set := &Set{revision: revision, LoadedAt: read, Topics: make(map[Name]*Topic, len(docs))}
	for _, doc := range docs {
		name := Name{doc.Key.Namespace, doc.Key.Name}
		t := old.Topics[name]
		if t == nil || t.Stored.Revision != doc.Revision { // opened once per revision: a certificate must stay the same pointer
			t = c.open(doc)
		}
		set.Topics[name] = t
	}
	c.cached.Store(set)
	c.lastFailure.Store(nil)
	return set, nil
}

// open decodes a topic's document and opens its credentials. The deliveries of a topic whose policy is not readable are held.
func (c *Cache) open(doc store.Document) *Topic {
	stored, err := doc.Topic()
	t := &Topic{Stored: stored, Resolved: stored.Policy.WithDefaults(c.defaults.Resolved)}
	if err == nil {
		t.Credentials = c.openCredentials(stored)
		return t
	}
	c.log.Error("topic policy not readable, holding the topic: put its policy again, then resume it", "topic", stored.Name, "err", err)
	t.Credentials = &secrets.Credentials{Err: err}
	return t
}

// recentFailure returns the failure of the last load, if that was less than retryLoadAfter ago.
func (c *Cache) recentFailure() *loadFailure {
	if f := c.lastFailure.Load(); f != nil && time.Since(f.at) < retryLoadAfter {
		return f
	}
	return nil
}
