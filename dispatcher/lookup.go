package dispatcher

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/dispatcher/policies"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// lookup finds stored topics for one call that may name many. A topic that is not in the snapshot makes it reload the
// policies, once per call.
type lookup struct {
	policies *policies.Cache
	set      *policies.Set // nil until the first find
	reloaded bool          // find has reloaded set
	err      error         // of the last load

	lanes    map[job.Queue]string // the URLs of lanes that jobs without one name
	lanesErr error                // of the read
}

// laneURL returns a lane's URL; empty: none.
func (l *lookup) laneURL(q job.Queue) (string, error) {
	if q.Lane == "" {
		return "", nil
	}
	if l.lanesErr != nil {
		return "", fmt.Errorf("look up lane %s: %w", q.Lane, l.lanesErr)
	}
	return l.lanes[q], nil
}

// find returns a stored topic, and whether there is one.
func (l *lookup) find(ctx context.Context, namespace, name string) (store.Topic, bool, error) {
	if l.set == nil {
		l.set, l.err = l.policies.Cached(ctx)
	}
	if l.set.Get(namespace, name) == nil && l.err == nil && !l.reloaded {
		l.reloaded = true
		l.set, l.err = l.policies.Reload(ctx)
	}
	if t := l.set.Get(namespace, name); t != nil {
		return t.Stored, true, nil
	}
	return store.Topic{}, false, l.err
}

// findNow is find for a topic whose policy forbids the job: it reloads the policies first, once per call.
func (l *lookup) findNow(ctx context.Context, namespace, name string) (store.Topic, error) {
	if !l.reloaded {
		l.reloaded = true
		if l.set, l.err = l.policies.Reload(ctx); l.err != nil {
			return store.Topic{}, l.err
		}
	}
	t, _, err := l.find(ctx, namespace, name)
	return t, err
}
