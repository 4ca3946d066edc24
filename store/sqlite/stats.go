package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"maps"
	"slices"

	"github.com/ringback/ringback/store"
)

// statsLanes is how many lanes of a topic are looked at for its oldest due moment.
const statsLanes = 1000

// Stats implements store.Store. It reads memory, and no jobs but the first of lanes whose head is not known.
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
	for q := range t.open {
		if q.open(tx.now) {
			row.Open++
		}
	}
	queues, err := tx.someQueues(t)
	if err != nil {
		return err
	}
	for _, q := range queues {
		if q.waiting == 0 {
			continue
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

// someQueues are at most statsLanes of a topic's queues. When there are more in memory, many may be idle, so it asks the
// database for those with pending jobs.
func (tx *tx) someQueues(t *topic) (queues []*queue, err error) {
	if len(t.queues) <= statsLanes {
		return slices.Collect(maps.Keys(t.queues)), nil
	}
	err = tx.query(topicQueues, func(v []driver.Value) error {
		if q := tx.mem.byID[integer(v[0])]; q != nil {
			queues = append(queues, q)
		}
		return nil
	}, t.name.namespace, t.name.name, int64(statsLanes))
	return queues, err
}

// Lanes implements store.Store. The lanes are read from the database, of which a page costs the same however many there
// are; only what is ready or runs, and what keeps a lane back, is in memory.
func (s *Store) Lanes(
	ctx context.Context, shard int, namespace, topic, after string, limit int,
) ([]store.LaneStats, error) {
	s.check(shard)
	var lanes []store.LaneStats
	var ids, pending []int64
	err := s.read(ctx, "count lanes", func(ctx context.Context, c *conn) error {
		return c.query(ctx, countLanes, func(v []driver.Value) error {
			ids, pending = append(ids, integer(v[0])), append(pending, integer(v[2]))
			lanes = append(lanes, store.LaneStats{Lane: text(v[1])})
			return nil
		}, namespace, topic, after, int64(max(0, limit)))
	})
	if err != nil || len(lanes) == 0 {
		return nil, err
	}
	inMemory := make([]store.LaneStats, len(ids))
	err = s.submit(ctx, &op{verb: "count lanes", weight: 1, run: func(tx *tx) error {
		clear(inMemory)
		for i, id := range ids {
			if q := tx.mem.byID[id]; q != nil {
				inMemory[i] = store.LaneStats{Ready: q.ready, Running: q.running, HeldUntil: q.heldUntil(tx.now), Open: q.open(tx.now)}
			}
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	for i, m := range inMemory {
		l := &lanes[i]
		l.HeldUntil, l.Open = m.HeldUntil, m.Open
		l.Running = min(m.Running, pending[i]) // which may be a commit apart
		l.Ready = min(m.Ready, pending[i]-l.Running)
		l.Scheduled = pending[i] - l.Running - l.Ready
	}
	return lanes, nil
}
