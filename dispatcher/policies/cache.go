package dispatcher

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/dispatcher/secrets"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// topicName names a topic in a namespace.
type topicName struct{ namespace, name string }

// policies is a cache of the topics' policies. Get takes no lock. Claims report the store's revision, so a process that
// claims reloads the cache when it changes (Sync), without polling. Others name the age at which they need it reloaded
// (Snapshot).
type policies struct {
	settings        store.Settings
	log             *slog.Logger
	openCredentials func(store.Topic) *secrets.Credentials // a topic's credentials; nil: none
	maxAge          time.Duration                          // of a snapshot for a registration
	defaults        cachedTopic                            // of topics without a stored policy

	cached      atomic.Pointer[policySet]
	loading     ctxMutex
	lastFailure atomic.Pointer[loadFailure] // of the last load; nil: it succeeded. Guarded by loading for writes
}

// A loadFailure is the error of a load.
type loadFailure struct {
	at  time.Time
	err error
}

// A policySet is an immutable snapshot of all stored policies.
type policySet struct {
	revision int64 // -1: the policies were never loaded
	loadedAt time.Time
	topics   map[topicName]*cachedTopic
}

// A cachedTopic is a topic's policy.
type cachedTopic struct {
	stored      store.Topic
	resolved    policy.Topic         // with defaults applied
	credentials *secrets.Credentials // nil: none
}

const (
	// reloadTimeout bounds a load whose caller needs the current policies, syncTimeout one whose caller can use the cache.
	reloadTimeout = 5 * time.Second
	syncTimeout   = time.Second
	// refreshAfter is the age at which Refresh reloads: a topic's rate may keep the process from claiming.
	refreshAfter = 5 * time.Second
	// retryLoadAfter is the pause after a load failed. Claims and registrations go on with the cache.
	retryLoadAfter = time.Second
	// policiesMaxAge is the maximum age of the cache in a process without claims, or while claims report an older revision.
	policiesMaxAge = time.Second
	// current and anyAge are maximum ages of a snapshot: reloaded now, and as it is unless the policies were never loaded.
	current time.Duration = 0
	anyAge  time.Duration = math.MaxInt64
)

func newPolicies(s store.Settings, defaults policy.Topic, open func(store.Topic) *secrets.Credentials, log *slog.Logger) *policies {
	p := &policies{
		settings: s, log: log, openCredentials: open, maxAge: anyAge, defaults: cachedTopic{resolved: defaults}, loading: newCtxMutex(),
	}
	p.cached.Store(&policySet{revision: -1})
	return p
}

// Get returns a topic's cached policy; the defaults if it has none.
func (p *policies) Get(namespace, name string) *cachedTopic {
	if t := p.cached.Load().topics[topicName{namespace, name}]; t != nil {
		return t
	}
	return &p.defaults
}

// Snapshot returns the policies, reloaded if they are older than maxAge. Concurrent callers share a load. With an error, which
// is not returned for other ages than current once the policies were loaded, the snapshot is the cached one.
//
// For other ages than current one caller loads. The rest use the cache, but wait for syncTimeout if it is older than two
// maxAge. If the load fails, all use the cache: the next write to the store reports the fault.
func (p *policies) Snapshot(ctx context.Context, maxAge time.Duration) (*policySet, error) {
	set := p.cached.Load()
	failure := p.recentFailure()
	switch {
	case maxAge == current:
		return p.reload(ctx)
	case set.revision < 0 && failure != nil:
		return set, failure.err
	case set.revision < 0:
		return p.reload(ctx)
	case time.Since(set.loadedAt) <= maxAge || failure != nil:
		return set, nil
	}
	patience := syncTimeout
	if time.Since(set.loadedAt)/2 <= maxAge || p.lastFailure.Load() != nil {
		patience = 0
	}
	if !p.loading.tryLockFor(ctx, patience) {
		return set, nil
	}
	defer p.loading.unlock()
	if set = p.cached.Load(); time.Since(set.loadedAt) > maxAge && p.recentFailure() == nil {
		set, _ = p.loadOrUseCache(ctx)
	}
	return set, nil
}

// resolved returns a topic's policy with defaults applied. A process without claims reloads it as Refresh does.
func (p *policies) resolved(ctx context.Context, namespace, name string) policy.Topic {
	_, _ = p.Snapshot(ctx, max(refreshAfter, p.maxAge)) // with an error the cache or the defaults apply
	return p.Get(namespace, name).resolved
}

// Refresh reloads policies that are older than refreshAfter.
func (p *policies) Refresh(ctx context.Context) { _, _ = p.Snapshot(ctx, refreshAfter) }

// Sync reloads the policies if the cache is older than the revision, and reports whether it is as new now. It does not wait
// for a load in progress.
//
// A lower revision than the cached one comes from a delayed reply, or from a shard that has not got the change yet. If it
// persists, a fault of the store has rolled policies back. So they are reloaded every policiesMaxAge.
func (p *policies) Sync(ctx context.Context, revision int64) bool {
	if p.isCurrent(revision) {
		return true
	}
	if !p.loading.tryLock() {
		return p.cached.Load().revision > revision
	}
	defer p.loading.unlock()
	if p.isCurrent(revision) {
		return true
	}
	if p.recentFailure() != nil {
		return false
	}
	set, err := p.loadOrUseCache(ctx)
	return err == nil && set.revision >= revision
}

// isCurrent reports whether the cache need not be reloaded for a revision of the store.
func (p *policies) isCurrent(revision int64) bool {
	set := p.cached.Load()
	return set.revision == revision || set.revision > revision && time.Since(set.loadedAt) < policiesMaxAge
}

// loadFirst loads the policies, and retries until it succeeds: without them, jobs would be judged by default policies. It
// returns false if ctx ends first.
func (p *policies) loadFirst(ctx context.Context) bool {
	var again store.Backoff
	for {
		_, err := p.reload(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		p.log.Warn("loading topic policies failed, retrying; deliveries start afterwards", "err", err)
		if !again.Wait(ctx) {
			return false
		}
	}
}

// reload returns all policies as they are in the store now. Concurrent callers share one load that began after all of them
// called, and its failure, so that an unresponsive store delays each of them once.
func (p *policies) reload(ctx context.Context) (*policySet, error) {
	asked := time.Now()
	if err := p.loading.lock(ctx); err != nil {
		return p.cached.Load(), &store.UnavailableError{Reason: "the store did not answer in time", Err: err}
	}
	defer p.loading.unlock()
	set := p.cached.Load()
	if set.loadedAt.After(asked) {
		return set, nil
	}
	if f := p.lastFailure.Load(); f != nil && f.at.After(asked) {
		return set, f.err
	}
	return p.load(ctx, reloadTimeout)
}

// loadOrUseCache is load for a caller that can use the cache.
func (p *policies) loadOrUseCache(ctx context.Context) (*policySet, error) {
	set, err := p.load(ctx, syncTimeout)
	if err != nil && ctx.Err() == nil {
		p.log.Warn("reloading topic policies failed, using cached ones", "err", err)
	}
	return set, err
}

// load reads all policies; with an error it returns the cached ones. It records a failure unless ctx has ended, which is not
// the store's fault. The caller holds loading.
func (p *policies) load(ctx context.Context, within time.Duration) (*policySet, error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	read := time.Now()
	old := p.cached.Load()
	docs, revision, err := p.settings.ListDocuments(limited, store.DocumentKey{Kind: store.KindTopic}, 0)
	if err != nil {
		if ctx.Err() == nil {
			p.lastFailure.Store(&loadFailure{at: time.Now(), err: err})
		}
		return old, err
	}
	set := &policySet{revision: revision, loadedAt: read, topics: make(map[topicName]*cachedTopic, len(docs))}
	for _, doc := range docs {
		name := topicName{doc.Key.Namespace, doc.Key.Name}
		c := old.topics[name]
		if c == nil || c.stored.Revision != doc.Revision { // opened once per revision: a certificate must stay the same pointer
			c = p.open(doc)
		}
		set.topics[name] = c
	}
	p.cached.Store(set)
	p.lastFailure.Store(nil)
	return set, nil
}

// open decodes a topic's document and opens its credentials. The deliveries of a topic whose policy is not readable are held.
func (p *policies) open(doc store.Document) *cachedTopic {
	t, err := doc.Topic()
	c := &cachedTopic{stored: t, resolved: t.Policy.WithDefaults(p.defaults.resolved)}
	if err == nil {
		c.credentials = p.openCredentials(t)
		return c
	}
	p.log.Error("topic policy not readable, holding the topic: put its policy again, then resume it", "topic", t.Name, "err", err)
	c.credentials = &secrets.Credentials{Err: err}
	return c
}

// recentFailure returns the failure of the last load, if that was less than retryLoadAfter ago.
func (p *policies) recentFailure() *loadFailure {
	if f := p.lastFailure.Load(); f != nil && time.Since(f.at) < retryLoadAfter {
		return f
	}
	return nil
}
