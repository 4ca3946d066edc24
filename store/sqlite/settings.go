package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// A laneConfig is the part of a lane's settings that a queue keeps in memory. Their document is read for a caller who does
// not know it yet.
type laneConfig struct {
	revision int64
	own      policy.Limits
	limits   policy.Limits // over those of the topic
}

// PutDocument implements store.Settings.
func (s *Store) PutDocument(ctx context.Context, token store.Token, doc store.Document, limits policy.Limits) (store.Document, error) {
	doc.Durability = nil
	encoded, err := json.Marshal(limits)
	if err != nil {
		return store.Document{}, fmt.Errorf("encode limits: %w", err)
	}
	var put store.Document
	err = s.db.Submit(ctx, &op{Verb: "put settings", Durable: true, Weight: 1, Run: func(tx *tx) (err error) {
		put, err = once(tx, call{"document", token}, func(d store.Document) int { return len(d.Value) }, func() (store.Document, error) {
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
	last := tx.mem.revisions[k.Kind]
	revision := store.NextRevision(last, tx.now.Millis)
	if err := tx.Exec(table.UpdateMeta, k.Kind, revision); err != nil {
		return store.Document{}, err
	}
	tx.mem.revisions[k.Kind] = revision
	tx.undo(func() { tx.mem.revisions[k.Kind] = last })
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
		if q := tx.mem.queues[k.Queue()]; q != nil {
			tx.setLaneConfig(q, doc.Revision, limits)
			tx.limitsChanged(q)
		}
	case store.KindTopic:
		err = tx.setTopicLimits(topicName{k.Namespace, k.Name}, doc.Revision, limits)
	}
	return doc, err
}

// setTopicLimits sets the limits of a topic and those of its lanes.
func (tx *tx) setTopicLimits(name topicName, revision int64, limits policy.Limits) error {
	t, err := tx.topic(name)
	if err != nil {
		return err
	}
	save(tx, &t.topicPolicy)
	t.setLimits(revision, limits, &tx.store.defaults)
	for q := range t.queues {
		if q.laneConfig != nil {
			tx.setLaneConfig(q, q.laneConfig.revision, q.laneConfig.own)
		}
		tx.limitsChanged(q)
	}
	return nil
}

// setLimits sets the limits of a topic; with revision 0 the defaults apply.
func (t *topic) setLimits(revision int64, limits policy.Limits, defaults *policy.Limits) {
	t.revision, t.limits = revision, defaults
	if revision != 0 {
		t.limits = new(limits.Over(*defaults))
	}
}

// setLaneConfig sets the limits of a queue's lane; with revision 0 those of the topic apply.
func (tx *tx) setLaneConfig(q *queue, revision int64, own policy.Limits) {
	save(tx, &q.laneConfig)
	q.laneConfig = newLaneConfig(q.topic, revision, own)
}

// newLaneConfig returns nil if revision is 0.
func newLaneConfig(t *topic, revision int64, own policy.Limits) *laneConfig {
	if revision == 0 {
		return nil
	}
	return &laneConfig{revision: revision, own: own, limits: own.Over(*t.limits)}
}

// limitsChanged plans a queue that may have been blocked or freed.
func (tx *tx) limitsChanged(q *queue) {
	tx.mayBeNewHead = true
	if q.waiting > 0 {
		tx.toPlan = append(tx.toPlan, q)
		tx.notify(q)
	}
}

// loadLaneConfig reads the limits of a queue that is loaded; nil if its lane has no settings.
func (tx *tx) loadLaneConfig(q *queue) (*laneConfig, error) {
	doc, limits, err := tx.laneDocument(store.QueueClaim{Queue: q.name})
	return newLaneConfig(q.topic, doc.Revision, limits), err
}

// laneDocument reads the document of a lane and its limits.
func (tx *tx) laneDocument(want store.QueueClaim) (store.Document, policy.Limits, error) {
	key := store.LaneKey(want.Queue)
	if tx.mem.revisions[store.KindLane] == 0 {
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
func (tx *tx) showLaneConfig(q *queue, want store.QueueClaim, left *store.QueueStatus) error {
	known := int64(0)
	if q.laneConfig != nil {
		known = q.laneConfig.revision
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
	if t := tx.mem.topics[topicName{want.Queue.Namespace, want.Queue.Topic}]; t != nil {
		topic = t.limits
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
