package sqlite

import (
	"cmp"
	"context"
	"slices"

	"github.com/ringback/ringback/store"
)

// statsLanes is how many lanes of a topic are looked at for its oldest due moment.
const statsLanes = 1000

// Stats implements store.Store; it reads memory only.
func (s *Store) Stats(ctx context.Context, shard int, namespace, topic string) ([]store.TopicStats, error) {
	s.check(shard)
	var all []store.TopicStats
	err := s.submit(ctx, &op{verb: "count jobs", weight: 1, run: func(tx *tx) error {
		all = nil
		if topic != "" {
			t := tx.mem.topics[topicName{namespace, topic}]
			return tx.count(t, &all)
		}
		for name, t := range tx.mem.topics {
			if name.namespace == namespace {
				if err := tx.count(t, &all); err != nil {
					return err
				}
			}
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b store.TopicStats) int { return cmp.Compare(a.Topic, b.Topic) })
	return all, nil
}

// count adds a topic's row, unless no job was ever registered in it.
func (tx *tx) count(t *topic, all *[]store.TopicStats) error {
	if t == nil || t.registered == 0 {
		return nil
	}
	row := store.TopicStats{
		Namespace: t.name.namespace, Topic: t.name.name,
		Registered: t.registered, Delivered: t.delivered, Dead: t.dead, Cancelled: t.cancelled,
		Scheduled: t.waiting - t.ready, Ready: t.ready, Running: t.running,
	}
	looked := 0
	for q := range t.queues {
		if q.waiting == 0 {
			continue
		}
		if looked++; looked > statsLanes {
			break
		}
		if err := tx.learnHead(q); err != nil {
			return err
		}
		if at := date(q.head.due); row.OldestDue.IsZero() || at.Before(row.OldestDue) {
			row.OldestDue = at
		}
	}
	*all = append(*all, row)
	return nil
}

// Lanes implements store.Store; it reads memory only.
func (s *Store) Lanes(
	ctx context.Context, shard int, namespace, topic, after string, limit int,
) ([]store.LaneStats, error) {
	s.check(shard)
	var lanes []store.LaneStats
	err := s.submit(ctx, &op{verb: "count lanes", weight: 1, run: func(tx *tx) error {
		lanes = nil
		t := tx.mem.topics[topicName{namespace, topic}]
		if t == nil {
			return nil
		}
		for q := range t.queues {
			if q.name.Lane > after && q.waiting+q.running > 0 {
				lanes = append(lanes, store.LaneStats{
					Lane: q.name.Lane, Scheduled: q.waiting - q.ready, Ready: q.ready, Running: q.running,
				})
			}
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(lanes, func(a, b store.LaneStats) int { return cmp.Compare(a.Lane, b.Lane) })
	return lanes[:min(limit, len(lanes))], nil
}
