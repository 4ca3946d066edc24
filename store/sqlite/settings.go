package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// PutDocument implements store.Settings.
func (s *Store) PutDocument(ctx context.Context, token store.Token, doc store.Document, limits policy.Limits) (store.Document, error) {
	doc.Durability = nil
	encoded, err := json.Marshal(limits)
	if err != nil {
		return store.Document{}, fmt.Errorf("encode limits: %w", err)
	}
	var put store.Document
	err = s.db.Submit(ctx, &op{Verb: "put settings", Durable: true, Weight: 1, Run: func(tx *tx) (err error) {
		put, err = once(tx, memory.Call{Method: "document", Token: token}, func(d store.Document) int { return len(d.Value) }, func() (store.Document, error) {
			stored, _, err := readDocument(context.Background(), tx.Conn, doc.Key)
			if err != nil {
				return store.Document{}, err
			}
			if err := store.CheckRevision(doc.Revision, stored.Revision); err != nil {
				return store.Document{}, err
			}
			return tx.putDocument(doc, limits, string(encoded))
		})
		return err
	}})
	if err != nil {
		return store.Document{}, err
	}
	return put, nil
}

// putDocument stores a document, or removes it, and applies its limits.
func (tx *tx) putDocument(doc store.Document, limits policy.Limits, encoded string) (store.Document, error) {
	k := doc.Key
	last := tx.mem.Revisions[k.Kind]
	revision := store.NextRevision(last, tx.now.Millis)
	if err := tx.Exec(table.UpdateMeta, k.Kind, revision); err != nil {
		return store.Document{}, err
	}
	tx.mem.Revisions[k.Kind] = revision
	tx.undo(func() { tx.mem.Revisions[k.Kind] = last })
	doc.Revision = revision
	var err error
	if len(doc.Value) == 0 {
		doc.Revision = 0
		err = tx.Exec(table.DeleteDocument, k.Kind, k.Namespace, k.Name, k.Lane)
	} else {
		err = tx.Exec(table.InsertDocument, k.Kind, k.Namespace, k.Name, k.Lane, revision, encoded, string(doc.Value))
	}
	if err != nil {
		return store.Document{}, err
	}
	switch k.Kind {
	case store.KindLane:
		if q := tx.mem.Queues[k.Queue()]; q != nil {
			tx.setLaneConfig(q, doc.Revision, limits)
			tx.limitsChanged(q)
		}
	case store.KindTopic:
		err = tx.setTopicLimits(memory.TopicName{Namespace: k.Namespace, Name: k.Name}, doc.Revision, limits)
	}
	return doc, err
}

// setTopicLimits sets the limits of a topic and those of its lanes.
func (tx *tx) setTopicLimits(name memory.TopicName, revision int64, limits policy.Limits) error {
	t, err := tx.topic(name)
	if err != nil {
		return err
	}
	save(tx, &t.TopicPolicy)
	t.SetLimits(revision, limits, &tx.store.defaults)
	for q := range t.Queues {
		if q.LaneConfig != nil {
			tx.setLaneConfig(q, q.LaneConfig.Revision, q.LaneConfig.Own)
		}
		tx.limitsChanged(q)
	}
	return nil
}

// setLaneConfig sets the limits of a queue's lane; with revision 0 those of the topic apply.
func (tx *tx) setLaneConfig(q *memory.Queue, revision int64, own policy.Limits) {
	save(tx, &q.LaneConfig)
	q.LaneConfig = memory.NewLaneConfig(q.Topic, revision, own)
}

// limitsChanged plans a queue that may have been blocked or freed.
func (tx *tx) limitsChanged(q *memory.Queue) {
	tx.mayBeNewHead = true
	if q.Waiting > 0 {
		tx.toPlan = append(tx.toPlan, q)
		tx.notify(q)
	}
}

// loadLaneConfig reads the limits of a queue that is loaded; nil if its lane has no settings.
func (tx *tx) loadLaneConfig(q *memory.Queue) (*memory.LaneConfig, error) {
	doc, limits, err := tx.laneDocument(store.QueueClaim{Queue: q.Name})
	return memory.NewLaneConfig(q.Topic, doc.Revision, limits), err
}

// laneDocument reads the document of a lane and its limits.
func (tx *tx) laneDocument(want store.QueueClaim) (store.Document, policy.Limits, error) {
	key := store.LaneKey(want.Queue)
	if tx.mem.Revisions[store.KindLane] == 0 {
		return store.Document{Key: key}, policy.Limits{}, nil
	}
	doc, limits, err := readDocument(context.Background(), tx.Conn, key)
	return doc, tx.store.parseLimits(key, limits), err
}

// readDocument reads a document, with the stored form of its limits; revision 0: none is stored.
func readDocument(ctx context.Context, c *db.Conn, key store.DocumentKey) (doc store.Document, limits string, err error) {
	doc.Key = key
	err = c.Query(ctx, table.FindDocument, func(v []driver.Value) error {
		doc.Revision, limits, doc.Value = db.Int(v[0]), db.Text(v[1]), []byte(db.Text(v[2]))
		return nil
	}, key.Kind, key.Namespace, key.Name, key.Lane)
	return doc, limits, err
}

// parseLimits reads stored limits. Unreadable ones are a pause: anything else could open what somebody paused.
func (s *Store) parseLimits(key store.DocumentKey, stored string) (limits policy.Limits) {
	if stored == "" {
		return limits
	}
	if err := json.Unmarshal([]byte(stored), &limits); err != nil {
		s.log.Error("limits unreadable, treating the topic or lane as paused: put its settings again, then resume it",
			"topic", key.Name, "lane", key.Lane, "err", err)
		return policy.Limits{Paused: true}
	}
	return limits
}

// showLaneConfig adds the settings that the caller of a claim does not know to its reply.
func (tx *tx) showLaneConfig(q *memory.Queue, want store.QueueClaim, left *store.QueueStatus) error {
	known := int64(0)
	if q.LaneConfig != nil {
		known = q.LaneConfig.Revision
	}
	if known == want.Lane {
		return nil
	}
	doc, _, err := tx.laneDocument(want)
	left.Lane = &doc
	return err
}

// statusOfUnloaded returns the status of a lane that is not in memory, since it has no pending jobs and no throttle.
func (tx *tx) statusOfUnloaded(want store.QueueClaim, left *store.QueueStatus) error {
	doc, limits, err := tx.laneDocument(want)
	if err != nil {
		return err
	}
	if doc.Revision != want.Lane {
		left.Lane = &doc
	}
	topic := &tx.store.defaults
	if t := tx.mem.Topics[memory.TopicName{Namespace: want.Queue.Namespace, Name: want.Queue.Topic}]; t != nil {
		topic = t.Limits
	}
	left.Blocked = limits.Paused || topic.Paused
	return nil
}

// GetDocuments implements store.Settings.
func (s *Store) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	bound("documents", len(keys))
	docs := make([]store.Document, len(keys))
	err := s.db.Read(ctx, "read settings", func(ctx context.Context, c *db.Conn) (err error) {
		for i, key := range keys {
			if docs[i], _, err = readDocument(ctx, c, key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return docs, nil
}

// ListDocuments implements store.Settings. It reads the revision first, so that it is not newer than the documents.
func (s *Store) ListDocuments(ctx context.Context, after store.DocumentKey, limit int) ([]store.Document, int64, error) {
	bound("documents", limit)
	var docs []store.Document
	revision := int64(0)
	err := s.db.Read(ctx, "list settings", func(ctx context.Context, c *db.Conn) error {
		if err := c.Query(ctx, table.ReadMeta, func(v []driver.Value) error {
			revision = db.Int(v[0])
			return nil
		}, after.Kind); err != nil {
			return err
		}
		statement, args := table.DocumentsAfter, []driver.Value{after.Kind, after.Namespace, after.Name}
		if after.Kind == store.KindLane {
			statement, args = table.LanesAfter, []driver.Value{after.Namespace, after.Name, after.Lane}
		}
		if limit <= 0 {
			limit = -1 // all
		}
		return c.Query(ctx, statement, func(v []driver.Value) error {
			key := store.DocumentKey{Kind: after.Kind, Namespace: db.Text(v[0]), Name: db.Text(v[1]), Lane: db.Text(v[2])}
			docs = append(docs, store.Document{Key: key, Revision: db.Int(v[3]), Value: []byte(db.Text(v[4]))})
			return nil
		}, append(args, int64(limit))...)
	})
	if err != nil {
		return nil, 0, err
	}
	return docs, revision, nil
}
