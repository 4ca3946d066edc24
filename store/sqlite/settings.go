package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// PutDocument implements store.Settings.
func (s *Store) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	doc.Durability = nil
	encoded, err := json.Marshal(limits)
	if err != nil {
		return store.Document{}, fmt.Errorf("encode limits: %w", err)
	}
	weigh := func(d store.Document) int { return len(d.Value) }
	return unit.Submit(ctx, s.db, token, op{
		Verb: "put settings", Durable: true,
		Weight: 1,
	}, weigh, func(u *unit.Unit) (store.Document, error) {
		stored, _, err := unit.ReadDocument(context.Background(), u.Conn, doc.Key)
		if err != nil {
			return store.Document{}, err
		}
		if err := store.CheckRevision(doc.Revision, stored.Revision); err != nil {
			return store.Document{}, err
		}
		return putDocument(u, doc, limits, string(encoded))
	})
}

// putDocument stores a document, or removes it, and applies its limits.
func putDocument(u *unit.Unit, doc store.Document, limits policy.Limits, encoded string) (store.Document, error) {
	k := doc.Key
	last := u.Mem.Revisions[k.Kind]
	revision := store.NextRevision(last, u.Now.Millis)
	if err := u.Exec(table.UpdateMeta, k.Kind, revision); err != nil {
		return store.Document{}, err
	}
	u.Mem.Revisions[k.Kind] = revision
	u.OnUndo(func() { u.Mem.Revisions[k.Kind] = last })
	doc.Revision = revision
	var err error
	if len(doc.Value) == 0 {
		doc.Revision = 0
		err = u.Exec(table.DeleteDocument, k.Kind, k.Namespace, k.Name, k.Lane)
	} else {
		err = u.Exec(table.InsertDocument, k.Kind, k.Namespace, k.Name, k.Lane, revision, encoded, string(doc.Value))
	}
	if err != nil {
		return store.Document{}, err
	}
	switch k.Kind {
	case store.KindLane:
		if q := u.Mem.Queues[k.Queue()]; q != nil {
			u.SetLaneConfig(q, doc.Revision, limits)
			u.LimitsChanged(q)
		}
	case store.KindTopic:
		err = u.SetTopicLimits(memory.TopicName{Namespace: k.Namespace, Name: k.Name}, doc.Revision, limits)
	}
	if err == nil {
		err = u.Exec(table.InsertChange, k.Kind, revision, k.Namespace, k.Name, k.Lane)
	}
	if err == nil {
		err = u.Exec(table.DeleteChanges, k.Kind, int64(store.KeptChanges))
	}
	return doc, err
}

// addLaneDocument adds a lane's settings to its status, if the caller of a claim does not know them.
func addLaneDocument(u *unit.Unit, q *memory.Queue, want store.QueueClaim, status *store.QueueStatus) error {
	known := int64(0)
	if q.LaneConfig != nil {
		known = q.LaneConfig.Revision
	}
	if known == want.LaneRevision {
		return nil
	}
	doc, _, err := u.LaneDocument(want)
	status.LaneDocument = &doc
	return err
}

// completeUnloaded completes the status of a lane that is not in memory, since it has no pending jobs and no throttle.
func completeUnloaded(u *unit.Unit, want store.QueueClaim, status *store.QueueStatus) error {
	doc, limits, err := u.LaneDocument(want)
	if err != nil {
		return err
	}
	if doc.Revision != want.LaneRevision {
		status.LaneDocument = &doc
	}
	topic := u.Env.Defaults
	if t := u.Mem.Topics[memory.TopicName{Namespace: want.Queue.Namespace, Name: want.Queue.Topic}]; t != nil {
		topic = t.Limits
	}
	status.Blocked = limits.Paused || topic.Paused
	return nil
}

// GetDocuments implements store.Settings.
func (s *Store) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	checkBatch("documents", len(keys))
	docs := make([]store.Document, len(keys))
	err := s.db.Read(ctx, "read settings", func(ctx context.Context, c *db.Conn) (err error) {
		for i, key := range keys {
			if docs[i], _, err = unit.ReadDocument(ctx, c, key); err != nil {
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

// ListDocuments implements store.Settings.
func (s *Store) ListDocuments(
	ctx context.Context, after store.DocumentKey, limit int,
) (docs []store.Document, revision int64, err error) {
	checkBatch("documents", limit)
	err = s.db.Read(ctx, "list settings", func(ctx context.Context, c *db.Conn) (err error) {
		docs, revision, err = listDocuments(ctx, c, after, limit)
		return err
	})
	return docs, revision, err
}

// listDocuments reads the revision first, so that it is not newer than the documents. Of lanes it reads those of
// after's topic; without one, all.
func listDocuments(
	ctx context.Context, c *db.Conn, after store.DocumentKey, limit int,
) (docs []store.Document, revision int64, err error) {
	if err := c.Query(ctx, table.ReadMeta, func(v []driver.Value) error {
		revision = db.Int(v[0])
		return nil
	}, after.Kind); err != nil {
		return nil, 0, err
	}
	statement, args := table.DocumentsAfter, []driver.Value{after.Kind, after.Namespace, after.Name}
	if after.Kind == store.KindLane && after.Name != "" {
		statement, args = table.LanesAfter, []driver.Value{after.Namespace, after.Name, after.Lane}
	}
	if limit <= 0 {
		limit = -1 // all
	}
	err = c.Query(ctx, statement, func(v []driver.Value) error {
		key := store.DocumentKey{
			Kind: after.Kind, Namespace: db.Text(v[0]),
			Name: db.Text(v[1]), Lane: db.Text(v[2]),
		}
		docs = append(docs, store.Document{Key: key, Revision: db.Int(v[3]), Value: []byte(db.Text(v[4]))})
		return nil
	}, append(args, int64(limit))...)
	return docs, revision, err
}

// ListChanges implements store.Settings.
func (s *Store) ListChanges(ctx context.Context, kind string, since int64) (changes store.Changes, err error) {
	err = s.db.Read(ctx, "list changes of settings", func(ctx context.Context, c *db.Conn) (err error) {
		changes = store.Changes{IsComplete: true, Revision: since}
		var keys []store.DocumentKey
		if err := c.Query(ctx, table.ChangesSince, func(v []driver.Value) error {
			if revision := db.Int(v[0]); revision > since {
				changes.Revision = max(changes.Revision, revision)
				keys = append(keys, store.DocumentKey{
					Kind: kind, Namespace: db.Text(v[1]), Name: db.Text(v[2]), Lane: db.Text(v[3]),
				})
			} else {
				changes.IsComplete = false // the revision is known
			}
			return nil
		}, kind, since); err != nil {
			return err
		}
		if changes.IsComplete {
			changes.Documents, changes.Revision, err = listDocuments(ctx, c, store.DocumentKey{Kind: kind}, 0)
			return err
		}
		slices.SortFunc(keys, store.DocumentKey.Compare)
		for _, key := range slices.Compact(keys) {
			doc, _, err := unit.ReadDocument(ctx, c, key)
			if err != nil {
				return err
			}
			changes.Documents = append(changes.Documents, doc)
		}
		return nil
	})
	return changes, err
}
