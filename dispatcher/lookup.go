package dispatcher

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// lookup finds topics' policies as they were put, for one call that may name many: a topic that is not among those at
// hand makes it read the store. It does so once, whether that succeeds or fails.
type lookup struct {
	*policies
	set      *policySet // nil until the first find
	reloaded bool       // set was read, or could not be, for this call
	err      error      // why it could not

	lanes    map[job.Queue]string // the URLs of lanes that jobs without one name
	lanesErr error                // why they could not be read
}

// laneURL is a lane's URL; empty when it has none.
func (l *lookup) laneURL(q job.Queue) (string, error) {
	if q.Lane == "" {
		return "", nil
	}
	if l.lanesErr != nil {
		return "", fmt.Errorf("look up lane %s: %w", q.Lane, l.lanesErr)
	}
	return l.lanes[q], nil
}

func (l *lookup) find(ctx context.Context, name topicName) (store.Topic, bool, error) {
	if l.set == nil && l.err == nil {
		l.set, l.err = l.snapshot(ctx)
	}
	if l.set != nil {
		if t, ok := l.set.stored[name]; ok {
			return t, true, nil
		}
	}
	if l.err == nil && !l.reloaded {
		l.reloaded = true
		set, err := l.reload(ctx)
		if err == nil {
			l.set = set
		}
		l.err = err
	}
	if l.err != nil {
		return store.Topic{}, false, l.err
	}
	t, ok := l.set.stored[name]
	return t, ok, nil
}
