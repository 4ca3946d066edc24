package events

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

const (
	// subscriptionsAge is how old the subscriptions may be that an event is compared with, while the store answers.
	subscriptionsAge = 100 * time.Millisecond
	// maxSubscriptionsAge is how old they may be at most: an event that left out a lane for good would be worse than
	// one that is not accepted.
	maxSubscriptionsAge = 2 * time.Second
)

// Subscriptions finds the lanes that subscribe to events. It is safe for concurrent use.
type Subscriptions struct {
	shards []*shardLanes
}

// shardLanes are the lanes of a shard that subscribe.
type shardLanes struct {
	*documents.Cache[*subscription]

	byTopic atomic.Pointer[topicLanes]
}

// topicLanes are the lanes of a snapshot by topic.
type topicLanes struct {
	revision int64
	lanes    map[documents.Name][]subscriber
}

// subscription is what is known of a lane that subscribes.
type subscription struct {
	policy.Subscription

	url string
}

type subscriber struct {
	lane string
	*subscription
}

// NewSubscriptions returns the subscriptions of a store's lanes. Nothing is read until Find.
func NewSubscriptions(shards []store.Shard, log *slog.Logger) *Subscriptions {
	s := &Subscriptions{}
	for _, shard := range shards {
		s.shards = append(s.shards, &shardLanes{Cache: documents.New(documents.Options[*subscription]{
			Settings: shard, Kind: store.KindLane, Decode: decodeSubscription, Logger: log,
		})})
	}
	return s
}

// decodeSubscription returns the subscription of a lane; nil: it has none.
func decodeSubscription(doc store.Document, _ *subscription) (*subscription, error) {
	lane, err := doc.Lane()
	if err != nil || len(lane.Settings.Subscribe) == 0 {
		return nil, err
	}
	return &subscription{lane.Settings.Subscription, lane.Settings.URL}, nil
}

// Find returns the lanes of a topic whose subscription matches, in order of name.
func (s *Subscriptions) Find(
	ctx context.Context, namespace, topic string, matches func(*policy.Subscription) bool,
) ([]string, error) {
	var lanes []string
	for _, shard := range s.shards {
		set, err := shard.Snapshot(ctx, subscriptionsAge)
		if err == nil && time.Since(set.LoadedAt) > maxSubscriptionsAge {
			set, err = shard.Reload(ctx)
		}
		if err != nil {
			return nil, err
		}
		for _, l := range shard.topics(set)[documents.Name{Namespace: namespace, Name: topic}] {
			if matches(&l.Subscription) {
				lanes = append(lanes, l.lane)
			}
		}
	}
	slices.Sort(lanes)
	return lanes, nil
}

// URL returns the URL of a lane that subscribes, if what is known of it is new enough.
func (s *Subscriptions) URL(q job.Queue) (url string, known bool) {
	set := s.shards[store.ShardOf(len(s.shards), q)].Loaded()
	of := set.Values[documents.Name{Namespace: q.Namespace, Name: q.Topic, Lane: q.Lane}]
	if of == nil || time.Since(set.LoadedAt) > maxSubscriptionsAge {
		return "", false
	}
	return of.url, true
}

// Reload makes Find see a change of a shard's lanes that this process has made. Without an answer of the store it is
// seen as those of others are.
func (s *Subscriptions) Reload(ctx context.Context, shard int) {
	if of := s.shards[shard]; of.Loaded().Revision() >= 0 {
		_, _ = of.Reload(ctx)
	}
}

// topics returns the lanes of a snapshot by topic, made once for each.
func (s *shardLanes) topics(set *documents.Set[*subscription]) map[documents.Name][]subscriber {
	if known := s.byTopic.Load(); known != nil && known.revision == set.Revision() {
		return known.lanes
	}
	made := &topicLanes{revision: set.Revision(), lanes: make(map[documents.Name][]subscriber)}
	for name, of := range set.Values {
		if of != nil {
			topic := documents.Name{Namespace: name.Namespace, Name: name.Name}
			made.lanes[topic] = append(made.lanes[topic], subscriber{name.Lane, of})
		}
	}
	for _, lanes := range made.lanes {
		slices.SortFunc(lanes, func(a, b subscriber) int { return cmp.Compare(a.lane, b.lane) })
	}
	s.byTopic.Store(made)
	return made.lanes
}
