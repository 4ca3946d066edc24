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
// by its revision, which every claim reports, so nothing is polled.
type policies struct {
	store    store.Store
	defaults policy.Topic
	log      *slog.Logger

	now    atomic.Pointer[policySet]
	reload sync.Mutex
}

type policySet struct {
	revision int64
	put      map[topicName]store.Topic
	complete map[topicName]policy.Topic
}

// reloadTimeout bounds one reading of all policies.
const reloadTimeout = 5 * time.Second

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

// Sync reads the policies again when the revision is not the one at hand. When the store cannot be read the old ones go
// on, and the next call tries again.
func (p *policies) Sync(ctx context.Context, revision int64) {
	if p.now.Load().revision == revision {
		return
	}
	p.reload.Lock()
	defer p.reload.Unlock()
	if p.now.Load().revision == revision {
		return
	}
	if _, err := p.load(ctx); err != nil {
		p.log.Warn("topics' policies could not be read again", "err", err)
	}
}

// load reads all policies.
func (p *policies) load(ctx context.Context) (*policySet, error) {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	topics, revision, err := p.store.Topics(ctx)
	if err != nil {
		return nil, err
	}
	set := &policySet{
		revision: revision,
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
	return p.load(ctx)
}

// known gives a topic's policy as put. A topic that is not among those at hand is looked for in the store.
func (p *policies) known(ctx context.Context, name topicName) (store.Topic, bool, error) {
	if t, ok := p.now.Load().put[name]; ok {
		return t, true, nil
	}
	set, err := p.fresh(ctx)
	if err != nil {
		return store.Topic{}, false, err
	}
	t, ok := set.put[name]
	return t, ok, nil
}
