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
// a registration depends on a topic and those at hand are older than policiesLast.
type policies struct {
	store    store.Store
	defaults policy.Topic
	log      *slog.Logger
	open     func(store.Topic) *credentials // what a topic's attempts prove themselves with; nil: nothing
	lasts    time.Duration                  // how long what was read holds without a look at the store; zero: until a claim says otherwise

	now     atomic.Pointer[policySet]
	reading turn
	failed  atomic.Pointer[failure] // of the last reading; nil: it succeeded. Written by whose turn it is
}

// A failure is a reading that failed.
type failure struct {
	at  time.Time
	err error
}

type policySet struct {
	revision int64
	read     time.Time
	put      map[topicName]store.Topic
	complete map[topicName]policy.Topic
	proofs   map[topicName]*credentials // of topics that have some
}

const (
	// reloadTimeout bounds one reading of all policies for an answer, syncTimeout one between a claim and its attempts.
	reloadTimeout = 5 * time.Second
	syncTimeout   = time.Second
	// refreshAfter is how old policies may be where a topic's rate keeps the process from claiming, and so from hearing.
	refreshAfter = 5 * time.Second
	// syncAgain is the pause after a reading that failed: claims and registrations go on meanwhile.
	syncAgain = time.Second
	// policiesLast is how old policies may be in a process that claims nothing, or hears of older ones.
	policiesLast = time.Second
)

func newPolicies(s store.Store, defaults policy.Topic, open func(store.Topic) *credentials, log *slog.Logger) *policies {
	p := &policies{store: s, defaults: defaults, open: open, log: log, reading: newTurn()}
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

// recentTopic is Topic, for what may be a few seconds old. It never fails, and waits only for
// a first reading, or as Refresh does.
func (p *policies) recentTopic(ctx context.Context, namespace, name string) policy.Topic {
	switch {
	case p.now.Load().revision < 0 && !p.failedJustNow():
		_, _ = p.fresh(ctx) // the next one tries again
	case p.lasts > 0:
		p.Refresh(ctx)
	}
	return p.Topic(namespace, name)
}

// Credentials are what a topic's attempts prove themselves with.
func (p *policies) Credentials(namespace, name string) (job.Credentials, error) {
	if c := p.now.Load().proofs[topicName{namespace, name}]; c != nil {
		return c.Credentials, c.err
	}
	return job.Credentials{}, nil
}

// Refresh reads the policies again when they are older than refreshAfter, unless somebody does.
func (p *policies) Refresh(ctx context.Context) {
	if time.Since(p.now.Load().read) < refreshAfter || p.failedJustNow() || !p.reading.try() {
		return
	}
	defer p.reading.leave()
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
	if p.current(revision) {
		return true
	}
	if !p.reading.try() {
		return p.now.Load().revision > revision
	}
	defer p.reading.leave()
	if p.current(revision) {
		return true
	}
	if p.failedJustNow() {
		return false
	}
	set, err := p.load(ctx, syncTimeout)
	if err != nil {
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

// load reads all policies, and notes it when that fails; not when ctx ended, which says nothing about the store. The turn
// is ours.
func (p *policies) load(ctx context.Context, within time.Duration) (*policySet, error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	read := time.Now()
	topics, revision, err := p.store.Topics(limited)
	if err != nil {
		if ctx.Err() == nil {
			p.failed.Store(&failure{at: time.Now(), err: err})
		}
		return nil, err
	}
	set := &policySet{
		revision: revision, read: read,
		put:      make(map[topicName]store.Topic, len(topics)),
		complete: make(map[topicName]policy.Topic, len(topics)),
		proofs:   make(map[topicName]*credentials),
	}
	old := p.now.Load()
	for _, t := range topics {
		name := topicName{t.Namespace, t.Name}
		set.put[name] = t
		set.complete[name] = t.Policy.WithDefaults(p.defaults)
		c := old.proofs[name]
		if c == nil || c.revision != t.Revision { // opened once a change: certificates must stay the same pointer
			c = p.open(t)
		}
		if c != nil {
			set.proofs[name] = c
		}
	}
	p.now.Store(set)
	p.failed.Store(nil)
	return set, nil
}

// failedJustNow tells whether it is too early to read again.
func (p *policies) failedJustNow() bool {
	f := p.failed.Load()
	return f != nil && time.Since(f.at) < syncAgain
}

// fresh gives all policies as they are in the store now, for answers that must not be old. Callers who wait for each other
// share what is read after all of them asked, and a failure too: a store that is silent makes each wait once.
func (p *policies) fresh(ctx context.Context) (*policySet, error) {
	asked := time.Now()
	if err := p.reading.take(ctx); err != nil {
		return nil, &store.UnavailableError{Reason: "the store did not answer in time", Err: err}
	}
	defer p.reading.leave()
	if set := p.now.Load(); set.read.After(asked) {
		return set, nil
	}
	if f := p.failed.Load(); f != nil && f.at.After(asked) {
		return nil, f.err
	}
	return p.load(ctx, reloadTimeout)
}

// recent gives the policies at hand, read again when they are older than they may be. One caller reads; the others go on
// with what there is, unless that is from before a time in which nobody asked: then they give the reading a while. When it
// fails, everybody goes on with what there is: whoever writes to the store next hears what is wrong.
func (p *policies) recent(ctx context.Context) (*policySet, error) {
	set := p.now.Load()
	if p.holds(set) {
		return set, nil
	}
	if set.revision < 0 { // they were never read
		return p.fresh(ctx)
	}
	patience := syncTimeout
	if time.Since(set.read) <= 2*p.lasts || p.failed.Load() != nil {
		patience = 0
	}
	if !p.reading.within(ctx, patience) {
		return set, nil
	}
	defer p.reading.leave()
	if set = p.now.Load(); p.holds(set) || p.failedJustNow() {
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

func (p *policies) holds(set *policySet) bool { return p.lasts == 0 || time.Since(set.read) <= p.lasts }
