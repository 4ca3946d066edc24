package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// PutTopic implements store.Store. A policy's revision is that of all policies when it was put.
func (s *Store) PutTopic(ctx context.Context, put store.Topic) (store.Topic, error) {
	encoded := db.JSON(put.Policy)
	stored, err := parsePolicy(put.Name, encoded) // as the next Open will read it
	if err != nil {
		return store.Topic{}, fmt.Errorf("put a topic: %w", err)
	}
	var answer store.Topic
	err = s.db.Submit(ctx, &op{Verb: "put a topic", Durable: true, Weight: 1, Run: func(tx *tx) error {
		name := topicName{put.Namespace, put.Name}
		stands := int64(0)
		if t := tx.mem.topics[name]; t != nil {
			stands = t.revision
		}
		if put.Revision != 0 && max(put.Revision, 0) != stands {
			return store.ErrVersion
		}
		t, err := tx.topic(name)
		if err != nil {
			return err
		}
		revision := tx.mem.revision + 1
		if err := tx.Exec(table.UpdatePolicy, encoded, revision, t.id); err != nil {
			return err
		}
		if err := tx.Exec(table.UpdateMeta, revision, "revision"); err != nil {
			return err
		}
		save(tx, &t.topicPolicy)
		t.adopt(stored, revision, s.defaults)
		tx.mem.revision = revision
		tx.mayBeNewHead = true
		for q := range t.queues { // any may have been freed or blocked
			if q.laneConfig != nil {
				unread := q.laneConfig.unreadable
				tx.setLaneConfig(q, q.laneConfig.revision, q.laneConfig.own)
				q.laneConfig.unreadable = unread
			}
			if q.waiting > 0 {
				tx.toPlan = append(tx.toPlan, q)
				tx.notify(q)
			}
		}
		answer = t.view()
		return nil
	}})
	if err != nil {
		return store.Topic{}, err
	}
	return answer, nil
}

// Topics implements store.Store.
func (s *Store) Topics(ctx context.Context) ([]store.Topic, int64, error) {
	var topics []store.Topic
	var revision int64
	err := s.db.Submit(ctx, &op{Verb: "read the topics", Weight: 1, Run: func(tx *tx) error {
		topics, revision = []store.Topic{}, tx.mem.revision
		for _, t := range tx.mem.topics {
			if t.revision != 0 {
				topics = append(topics, t.view())
			}
		}
		return nil
	}})
	if err != nil {
		return nil, 0, err
	}
	slices.SortFunc(topics, func(a, b store.Topic) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return topics, revision, nil
}

func (t *topic) view() store.Topic {
	return store.Topic{Namespace: t.name.namespace, Name: t.name.name, Policy: *t.put, Revision: t.revision}
}
