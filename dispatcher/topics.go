package dispatcher

import (
	"cmp"
	"context"
	"slices"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Effective is a topic's policy with every default filled in.
func (d *Dispatcher) Effective(p policy.Topic) policy.Topic { return p.Over(d.opts.Defaults) }

// Topic is a topic's policy as it was put. One that only jobs have named has an empty policy and revision 0;
// store.ErrNotFound when it has neither.
func (d *Dispatcher) Topic(ctx context.Context, namespace, name string) (store.Topic, error) {
	set, err := d.policies.fresh(ctx)
	if err != nil {
		return store.Topic{}, err
	}
	if t, ok := set.put[topicName{namespace, name}]; ok {
		return t, nil
	}
	stats, err := d.store.Stats(ctx, namespace, name)
	if err != nil {
		return store.Topic{}, err
	}
	for _, s := range stats {
		if s.Topic == name && s.Registered > 0 {
			return store.Topic{Namespace: namespace, Name: name}, nil
		}
	}
	return store.Topic{}, store.ErrNotFound
}

// PutTopic writes a topic's policy; a revision other than 0 must be the current one, else store.ErrVersion.
func (d *Dispatcher) PutTopic(ctx context.Context, t store.Topic) (store.Topic, error) {
	if t.Policy.URL != "" {
		if err := d.checkURL(t.Policy.URL); err != nil {
			return store.Topic{}, err
		}
	}
	put, err := d.store.PutTopic(ctx, t)
	if err != nil {
		return store.Topic{}, err
	}
	// Jobs registered from now on see it at once; attempts see it by the revision that claims report.
	if _, err := d.policies.fresh(ctx); err != nil {
		d.log.Warn("topics' policies could not be read again", "err", err)
	}
	return put, nil
}

// Topics lists the topics that were put or that jobs have named, in order of name.
func (d *Dispatcher) Topics(ctx context.Context, namespace string) ([]store.Topic, error) {
	set, err := d.policies.fresh(ctx)
	if err != nil {
		return nil, err
	}
	stats, err := d.store.Stats(ctx, namespace, "")
	if err != nil {
		return nil, err
	}
	var topics []store.Topic
	for name, t := range set.put {
		if name.namespace == namespace {
			topics = append(topics, t)
		}
	}
	for _, s := range stats {
		if _, ok := set.put[topicName{namespace, s.Topic}]; !ok && s.Namespace == namespace {
			topics = append(topics, store.Topic{Namespace: namespace, Name: s.Topic})
		}
	}
	slices.SortFunc(topics, func(a, b store.Topic) int { return cmp.Compare(a.Name, b.Name) })
	return topics, nil
}

// Stats counts a topic's jobs, or (an empty topic) those of every topic, in order of name.
func (d *Dispatcher) Stats(ctx context.Context, namespace, topic string) ([]store.TopicStats, error) {
	return d.store.Stats(ctx, namespace, topic)
}

// Lanes counts the unfinished jobs of a topic's lanes, in order of name, beginning after a name.
func (d *Dispatcher) Lanes(ctx context.Context, namespace, topic, after string, limit int) ([]store.LaneStats, error) {
	return d.store.Lanes(ctx, namespace, topic, after, limit)
}
