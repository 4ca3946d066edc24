package documents

import (
	"context"

	"github.com/ringback/ringback/store"
)

// Lookup finds stored topics for one call that may name many. A topic that is not in the snapshot makes it reload the
// policies, once per call.
type Lookup struct {
	Cache *Policies

	set      *PolicySet // nil until the first Find
	reloaded bool       // set was reloaded
	err      error      // of the last load
}

// Find returns a stored topic, and whether there is one.
func (l *Lookup) Find(ctx context.Context, namespace, name string) (store.Topic, bool, error) {
	if l.set == nil {
		l.set, l.err = l.Cache.Cached(ctx)
	}
	if l.set.Get(namespace, name) == nil && l.err == nil && !l.reloaded {
		l.reloaded = true
		l.set, l.err = l.Cache.Reload(ctx)
	}
	if t := l.set.Get(namespace, name); t != nil {
		return t.Stored, true, nil
	}
	return store.Topic{}, false, l.err
}

// FindNow is Find for a topic whose policy forbids a job: it reloads the policies first, once per call.
func (l *Lookup) FindNow(ctx context.Context, namespace, name string) (store.Topic, error) {
	if !l.reloaded {
		l.reloaded = true
		if l.set, l.err = l.Cache.Reload(ctx); l.err != nil {
			return store.Topic{}, l.err
		}
	}
	t, _, err := l.Find(ctx, namespace, name)
	return t, err
}

// Reset makes the next Find use the cache again, after a change of a policy.
func (l *Lookup) Reset() { l.set, l.reloaded = nil, false }
