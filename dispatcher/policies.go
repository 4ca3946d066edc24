package dispatcher

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// topicName names a topic in a namespace.
type topicName struct{ namespace, name string }

// policies is a cache of the topics' policies. Lookups take no lock. Claims report the store's revision, so a process that
// claims reloads the cache when it changes, without polling. A process without claims reloads a cache older than
// policiesMaxAge when a registration depends on a topic.
type policies struct {
	store           store.Store
	defaults        policy.Topic
	log             *slog.Logger
	openCredentials func(store.Topic) *credentials // a topic's credentials; nil: none
	maxAge          time.Duration                  // of the cache; zero: until a claim reports another revision

	cached      atomic.Pointer[policySet]
	loading     ctxMutex
	lastFailure atomic.Pointer[loadFailure] // of the last load; nil: it succeeded. Guarded by loading for writes
}

// A loadFailure is the error of a load.
type loadFailure struct {
	at  time.Time
	err error
}

type policySet struct {
	revision    int64
	loadedAt    time.Time
	stored      map[topicName]store.Topic
	resolved    map[topicName]policy.Topic
	credentials map[topicName]*credentials // of topics that have some
}

const (
	// reloadTimeout bounds a load for an API request, syncTimeout one between a claim and its attempts.
	reloadTimeout = 5 * time.Second
	syncTimeout   = time.Second
	// refreshAfter is the age at which Refresh reloads: a topic's rate may keep the process from claiming.
	refreshAfter = 5 * time.Second
	// retryLoadAfter is the pause after a load failed. Claims and registrations go on with the cache.
	retryLoadAfter = time.Second
	// policiesMaxAge is the maximum age of the cache in a process without claims, or while claims report an older revision.
	policiesMaxAge = time.Second
)

func newPolicies(s store.Store, defaults policy.Topic, open func(store.Topic) *credentials, log *slog.Logger) *policies {
	p := &policies{store: s, defaults: defaults, openCredentials: open, log: log, loading: newCtxMutex()}
	p.cached.Store(&policySet{revision: -1})
	return p
}

// Topic returns a topic's policy with defaults applied.
func (p *policies) Topic(namespace, name string) policy.Topic {
	if t, ok := p.cached.Load().resolved[topicName{namespace, name}]; ok {
		return t
	}
	return p.defaults
}

// recentTopic returns a topic's policy, at most refreshAfter old. It never fails; it waits only for the first load, or as
// Refresh does.
func (p *policies) recentTopic(ctx context.Context, namespace, name string) policy.Topic {
	switch {
	case p.cached.Load().revision < 0 && !p.failedRecently():
		_, _ = p.reload(ctx) // the next one tries again
	case p.maxAge > 0:
		p.Refresh(ctx)
	}
	return p.Topic(namespace, name)
}

// Credentials returns a topic's signer and client certificate.
func (p *policies) Credentials(namespace, name string) (job.Credentials, error) {
	if c := p.cached.Load().credentials[topicName{namespace, name}]; c != nil {
		return c.Credentials, c.err
	}
	return job.Credentials{}, nil
}

// Refresh reloads policies that are older than refreshAfter, unless a load is in progress.
func (p *policies) Refresh(ctx context.Context) {
	if time.Since(p.cached.Load().loadedAt) < refreshAfter || p.failedRecently() || !p.loading.tryLock() {
		return
	}
	defer p.loading.unlock()
	if _, err := p.load(ctx, syncTimeout); err != nil && ctx.Err() == nil {
		p.log.Warn("reloading topic policies failed, using cached ones", "err", err)
	}
}

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
	if p.failedRecently() {
		return false
	}
	set, err := p.load(ctx, syncTimeout)
	if err != nil {
		p.log.Warn("reloading topic policies failed, using cached ones", "err", err)
		return false
	}
	return set.revision >= revision
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

// load reads all policies. It records a failure unless ctx has ended, which is not the store's fault. The caller holds loading.
func (p *policies) load(ctx context.Context, within time.Duration) (*policySet, error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	read := time.Now()
	topics, revision, err := p.store.Topics(limited)
	if err != nil {
		if ctx.Err() == nil {
			p.lastFailure.Store(&loadFailure{at: time.Now(), err: err})
		}
		return nil, err
	}
	set := &policySet{
		revision: revision, loadedAt: read,
		stored:      make(map[topicName]store.Topic, len(topics)),
		resolved:    make(map[topicName]policy.Topic, len(topics)),
		credentials: make(map[topicName]*credentials),
	}
	old := p.cached.Load()
	for _, t := range topics {
		name := topicName{t.Namespace, t.Name}
		set.stored[name] = t
		set.resolved[name] = t.Policy.WithDefaults(p.defaults)
		c := old.credentials[name]
		if c == nil || c.revision != t.Revision { // opened once per revision: a certificate must stay the same pointer
			c = p.openCredentials(t)
		}
		if c != nil {
			set.credentials[name] = c
		}
	}
	p.cached.Store(set)
	p.lastFailure.Store(nil)
	return set, nil
}

// failedRecently reports whether the last load failed less than retryLoadAfter ago.
func (p *policies) failedRecently() bool {
	f := p.lastFailure.Load()
	return f != nil && time.Since(f.at) < retryLoadAfter
}

// reload returns all policies as they are in the store now. Concurrent callers share one load that began after all of them
// called, and its failure, so that an unresponsive store delays each of them once.
func (p *policies) reload(ctx context.Context) (*policySet, error) {
	asked := time.Now()
	if err := p.loading.lock(ctx); err != nil {
		return nil, &store.UnavailableError{Reason: "the store did not answer in time", Err: err}
	}
	defer p.loading.unlock()
	if set := p.cached.Load(); set.loadedAt.After(asked) {
		return set, nil
	}
	if f := p.lastFailure.Load(); f != nil && f.at.After(asked) {
		return nil, f.err
	}
	return p.load(ctx, reloadTimeout)
}

// snapshot returns the cached policies, reloaded if they are older than maxAge. One caller loads. The others use the cache,
// but wait for syncTimeout if it is older than two maxAge. If the load fails, all use the cache: the next write to the store
// reports the fault.
func (p *policies) snapshot(ctx context.Context) (*policySet, error) {
	set := p.cached.Load()
	if p.isFresh(set) {
		return set, nil
	}
	if set.revision < 0 { // they were never read
		return p.reload(ctx)
	}
	patience := syncTimeout
	if time.Since(set.loadedAt) <= 2*p.maxAge || p.lastFailure.Load() != nil {
		patience = 0
	}
	if !p.loading.tryLockFor(ctx, patience) {
		return set, nil
	}
	defer p.loading.unlock()
	if set = p.cached.Load(); p.isFresh(set) || p.failedRecently() {
		return set, nil
	}
	read, err := p.load(ctx, reloadTimeout)
	if err == nil {
		return read, nil
	}
	if ctx.Err() == nil {
		p.log.Warn("reloading topic policies failed, using cached ones", "err", err)
	}
	return set, nil
}

func (p *policies) isFresh(set *policySet) bool {
	return p.maxAge == 0 || time.Since(set.loadedAt) <= p.maxAge
}
