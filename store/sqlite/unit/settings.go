package unit

import (
	"context"
	"database/sql/driver"
	"encoding/json"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// SetTopicLimits sets the limits of a topic, and of its lanes as far as they set none themselves.
func (u *Unit) SetTopicLimits(name memory.TopicName, revision int64, limits policy.Limits) error {
	t, err := u.Topic(name)
	if err != nil {
		return err
	}
	Save(u, &t.TopicPolicy)
	t.SetLimits(revision, limits, u.Env.Defaults)
	for q := range t.Queues {
		if q.LaneConfig != nil {
			u.SetLaneConfig(q, q.LaneConfig.Revision, q.LaneConfig.Own)
		}
		u.LimitsChanged(q)
	}
	return nil
}

// SetLaneConfig sets the limits of a queue's lane; with revision 0 those of the topic apply.
func (u *Unit) SetLaneConfig(q *memory.Queue, revision int64, own policy.Limits) {
	Save(u, &q.LaneConfig)
	q.LaneConfig = memory.NewLaneConfig(q.Topic, revision, own)
}

// LimitsChanged plans a queue that may have been blocked or freed.
func (u *Unit) LimitsChanged(q *memory.Queue) {
	u.MayBeNewHead = true
	if q.Order.On != q.Limits().Ordered {
		u.Touch(q)
		q.Order, q.Head, q.HeadKnown = memory.Order{}, table.Key{}, q.Waiting == 0
	}
	if q.Waiting > 0 {
		u.Plan(q)
		u.Notify(q)
	}
}

// loadLaneConfig reads the limits of a queue that is loaded; nil if its lane has no settings.
func (u *Unit) loadLaneConfig(q *memory.Queue) (*memory.LaneConfig, error) {
	doc, limits, err := u.LaneDocument(store.QueueClaim{Queue: q.Name})
	return memory.NewLaneConfig(q.Topic, doc.Revision, limits), err
}

// LaneDocument reads the document of a lane and its limits.
func (u *Unit) LaneDocument(want store.QueueClaim) (store.Document, policy.Limits, error) {
	key := store.LaneKey(want.Queue)
	if u.Mem.Revisions[store.KindLane] == 0 {
		return store.Document{Key: key}, policy.Limits{}, nil
	}
	doc, limits, err := ReadDocument(context.Background(), u.Conn, key)
	return doc, u.Env.ParseLimits(key, limits), err
}

// ReadDocument reads a document, with the stored form of its limits; revision 0: no document is stored.
func ReadDocument(
	ctx context.Context, c *db.Conn, key store.DocumentKey,
) (doc store.Document, limits string, err error) {
	doc.Key = key
	err = c.Query(ctx, table.FindDocument, func(v []driver.Value) error {
		doc.Revision, limits, doc.Value = db.Int(v[0]), db.Text(v[1]), []byte(db.Text(v[2]))
		return nil
	}, key.Kind, key.Namespace, key.Name, key.Lane)
	return doc, limits, err
}

// ParseLimits reads stored limits. Unreadable ones pause the topic or lane: anything else could resume one that was
// paused.
func (e *Env) ParseLimits(key store.DocumentKey, stored string) (limits policy.Limits) {
	if stored == "" {
		return limits
	}
	if err := json.Unmarshal([]byte(stored), &limits); err != nil {
		e.Log.Error("limits unreadable, treating the topic or lane as paused: put its settings again, then resume it",
			"topic", key.Name, "lane", key.Lane, "err", err)
		return policy.Limits{Paused: true}
	}
	return limits
}
