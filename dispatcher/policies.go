package dispatcher

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// topicName names a topic in a namespace.
type topicName struct{ namespace, name string }

// policies keeps the topics' policies at hand. Reading is one look-up without a lock; what changed in the store is seen
// by its revision, which every claim reports, so nothing is polled. A process that claims nothing reads them again where
// a registration depends on a topic and those at hand are older than policiesLast.
type policies struct {
	store    store.Store
	defaults policy.Topic
	log      *slog.Logger
	lasts    time.Duration // how long what was read holds without a look at the store; zero: until a claim says otherwise

	now    atomic.Pointer[policySet]
	reload sync.Mutex
	failed time.Time // when they could last not be read; guarded by reload
}

type policySet struct {
	revision int64
	read     time.Time
	put      map[topicName]store.Topic
	complete map[topicName]policy.Topic
}

const (
	// reloadTimeout bounds one reading of all policies for an answer, syncTimeout one between a claim and its attempts.
	reloadTimeout = 5 * time.Second
	syncTimeout   = time.Second
	// syncAgain is the pause after a reading that failed: claims go on meanwhile.
	syncAgain = time.Second
	// policiesLast is how old policies may be in a process that claims nothing, or hears of older ones.
	policiesLast = time.Second
)

func newPolicies(s store.Store, defaults policy.Topic, log *slog.Logger) *policies {
	p := &policies{store: s, defaults: defaults, log: log}
	p.now.Store(&policySet{revision: -1})
	return p
}

// Topic is the complete policy that holds now.
func (p *policies) Topic(namespace, name string) policy.Topic {
	if t, ok := p.now.Load().complete[topicName{namespace, name}]; ok {
		return t
	}
	return p.defaults
}

// Sync reads the policies again when those at hand are older than the revision, and tells whether they are as new now.
// It does not wait for a reading that is under way.
//
// A revision that is lower than ours is an answer that was under way, or comes of a shard that was not told yet; but when
// it stays, a fault of the store took policies back that we have seen. So they are read again, once in a while.
func (p *policies) Sync(ctx context.Context, revision int64) bool {
	if p.current(revision) {
		return true
	}
	if !p.reload.TryLock() {
		return p.now.Load().revision > revision
	}
	defer p.reload.Unlock()
	if p.current(revision) {
		return true
	}
	if time.Since(p.failed) < syncAgain {
		return false
	}
	set, err := p.load(ctx, syncTimeout)
	if err != nil {
		p.failed = time.Now()
		p.log.Warn("topics' policies could not be read again", "err", err)
		return false
	}
	return set.revision >= revision
}

// current tells whether the policies at hand need not be read again because the store has that revision.
func (p *policies) current(revision int64) bool {
	set := p.now.Load()
	return set.revision == revision || set.revision > revision && time.Since(set.read) < policiesLast
}

// await reads the policies for the first time, for as long as it takes: without them, jobs would be judged by defaults
// that are not theirs. False when ctx ended first.
func (p *policies) await(ctx context.Context) bool {
	var again store.Backoff
	for {
		_, err := p.fresh(ctx)
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

// load reads all policies. p.reload is held.
func (p *policies) load(ctx context.Context, within time.Duration) (*policySet, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	read := time.Now()
	topics, revision, err := p.store.Topics(ctx)
	if err != nil {
		return nil, err
	}
	set := &policySet{
		revision: revision, read: read,
		put:      make(map[topicName]store.Topic, len(topics)),
		complete: make(map[topicName]policy.Topic, len(topics)),
	}
	for _, t := range topics {
		name := topicName{t.Namespace, t.Name}
		set.put[name] = t
		set.complete[name] = t.Policy.Over(p.defaults)
	}
	p.now.Store(set)
	return set, nil
}

// fresh reads all policies from the store, for answers that must not be old.
func (p *policies) fresh(ctx context.Context) (*policySet, error) {
	p.reload.Lock()
	defer p.reload.Unlock()
	return p.load(ctx, reloadTimeout)
}

// recent gives the policies at hand, read again when they are older than they may be.
func (p *policies) recent(ctx context.Context) (*policySet, error) {
	if set := p.now.Load(); p.holds(set) {
		return set, nil
	}
	p.reload.Lock()
	defer p.reload.Unlock()
	if set := p.now.Load(); p.holds(set) {
		return set, nil // somebody else read them meanwhile
	}
	return p.load(ctx, reloadTimeout)
}

func (p *policies) holds(set *policySet) bool { return p.lasts == 0 || time.Since(set.read) <= p.lasts }

// lookup finds topics' policies as they were put, for one call that may name many: a topic that is not among those at
// hand makes it read the store, once.
type lookup struct {
	*policies
	fresh *policySet
}

func (l *lookup) find(ctx context.Context, name topicName) (store.Topic, bool, error) {
	if l.fresh == nil {
		set, err := l.recent(ctx)
		if err != nil {
			return store.Topic{}, false, err
		}
		if t, ok := set.put[name]; ok {
			return t, true, nil
		}
		if l.fresh, err = l.policies.fresh(ctx); err != nil {
			return store.Topic{}, false, err
		}
	}
	t, ok := l.fresh.put[name]
	return t, ok, nil
}
