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

// policies keeps the topics' policies at hand. Reading is one look-up without a lock; what changed in the store is seen
// by its revision, which every claim reports, so nothing is polled. A process that claims nothing reads them again where
// a registration depends on a topic and those at hand are older than policiesMaxAge.
type policies struct {
	store           store.Store
	defaults        policy.Topic
	log             *slog.Logger
	openCredentials func(store.Topic) *credentials // what a topic's attempts prove themselves with; nil: nothing
	maxAge          time.Duration                  // how long what was read holds without a look at the store; zero: until a claim says otherwise

	cached      atomic.Pointer[policySet]
	loading     ctxMutex
	lastFailure atomic.Pointer[loadFailure] // of the last reading; nil: it succeeded. Written by whose turn it is
}

// A loadFailure is a reading that failed.
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
	// reloadTimeout bounds one reading of all policies for an answer, syncTimeout one between a claim and its attempts.
	reloadTimeout = 5 * time.Second
	syncTimeout   = time.Second
	// refreshAfter is how old policies may be where a topic's rate keeps the process from claiming, and so from hearing.
	refreshAfter = 5 * time.Second
	// retryLoadAfter is the pause after a reading that failed: claims and registrations go on meanwhile.
	retryLoadAfter = time.Second
	// policiesMaxAge is how old policies may be in a process that claims nothing, or hears of older ones.
	policiesMaxAge = time.Second
)

func newPolicies(s store.Store, defaults policy.Topic, open func(store.Topic) *credentials, log *slog.Logger) *policies {
	p := &policies{store: s, defaults: defaults, openCredentials: open, log: log, loading: newCtxMutex()}
	p.cached.Store(&policySet{revision: -1})
	return p
}

// Topic is the complete policy that holds now.
func (p *policies) Topic(namespace, name string) policy.Topic {
	if t, ok := p.cached.Load().resolved[topicName{namespace, name}]; ok {
		return t
	}
	return p.defaults
}

// recentTopic is Topic, for what may be a few seconds old. It never fails, and waits only for
// a first reading, or as Refresh does.
func (p *policies) recentTopic(ctx context.Context, namespace, name string) policy.Topic {
	switch {
	case p.cached.Load().revision < 0 && !p.failedRecently():
		_, _ = p.reload(ctx) // the next one tries again
	case p.maxAge > 0:
		p.Refresh(ctx)
	}
	return p.Topic(namespace, name)
}

// Credentials are what a topic's attempts prove themselves with.
func (p *policies) Credentials(namespace, name string) (job.Credentials, error) {
	if c := p.cached.Load().credentials[topicName{namespace, name}]; c != nil {
		return c.Credentials, c.err
	}
	return job.Credentials{}, nil
}

// Refresh reads the policies again when they are older than refreshAfter, unless somebody does.
func (p *policies) Refresh(ctx context.Context) {
	if time.Since(p.cached.Load().loadedAt) < refreshAfter || p.failedRecently() || !p.loading.tryLock() {
		return
	}
	defer p.loading.unlock()
	if _, err := p.load(ctx, syncTimeout); err != nil && ctx.Err() == nil {
		p.log.Warn("topics' policies could not be read again", "err", err)
	}
}

// Sync reads the policies again when those at hand are older than the revision, and tells whether they are as new now.
// It does not wait for a reading that is under way.
//
// A revision that is lower than ours is an answer that was under way, or comes of a shard that was not told yet; but when
// it stays, a fault of the store took policies back that we have seen. So they are read again, once in a while.
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
		p.log.Warn("topics' policies could not be read again", "err", err)
		return false
	}
	return set.revision >= revision
}

// isCurrent tells whether the policies at hand need not be read again because the store has that revision.
func (p *policies) isCurrent(revision int64) bool {
	set := p.cached.Load()
	return set.revision == revision || set.revision > revision && time.Since(set.loadedAt) < policiesMaxAge
}

// loadFirst reads the policies for the first time, for as long as it takes: without them, jobs would be judged by defaults
// that are not theirs. False when ctx ended first.
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
		p.log.Warn("topics' policies could not be read; nothing is attempted before", "err", err)
		if !again.Wait(ctx) {
			return false
		}
	}
}

// load reads all policies, and notes it when that fails; not when ctx ended, which says nothing about the store. The turn
// is ours.
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
		if c == nil || c.revision != t.Revision { // opened once a change: certificates must stay the same pointer
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

// failedRecently tells whether it is too early to read again.
func (p *policies) failedRecently() bool {
	f := p.lastFailure.Load()
	return f != nil && time.Since(f.at) < retryLoadAfter
}

// reload gives all policies as they are in the store now, for answers that must not be old. Callers who wait for each other
// share what is read after all of them asked, and a failure too: a store that is silent makes each wait once.
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

// snapshot gives the policies at hand, read again when they are older than they may be. One caller reads; the others go on
// with what there is, unless that is from before a time in which nobody asked: then they give the reading a while. When it
// fails, everybody goes on with what there is: whoever writes to the store next hears what is wrong.
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
		p.log.Warn("topics' policies could not be read again", "err", err)
	}
	return set, nil
}

func (p *policies) isFresh(set *policySet) bool {
	return p.maxAge == 0 || time.Since(set.loadedAt) <= p.maxAge
}
