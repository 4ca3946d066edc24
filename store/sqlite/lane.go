package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// A laneConfig is the part of a lane's settings that a queue keeps in memory: what a claim needs. All of them are read for a
// caller who does not know them yet.
type laneConfig struct {
	revision int64
	own      policy.Limits
	limits   policy.Limits // over those of the topic
	// unreadable says that the stored settings cannot be read: the lane is treated as paused until others are put.
	unreadable bool
}

// PutLane implements store.Shard. A revision follows the clock, so that it is not given again when a database comes back
// from a backup.
func (s *Store) PutLane(ctx context.Context, token store.Token, put store.Lane) (store.Lane, error) {
	encoded := db.JSON(put.Settings)
	settings, err := parseLane(put.Queue, encoded) // as it will be read
	if err != nil {
		return store.Lane{}, fmt.Errorf("put a lane's settings: %w", err)
	}
	var answer store.Lane
	err = s.db.Submit(ctx, &op{Verb: "put a lane's settings", Durable: true, Weight: 1, Run: func(tx *tx) (err error) {
		answer, err = once(tx, call{"lane", token}, func(store.Lane) int { return len(encoded) }, func() (store.Lane, error) {
			stands, err := tx.lane(put.Queue)
			if err != nil && !table.IsUnreadable(err) { // those can be replaced
				return store.Lane{}, err
			}
			if put.Revision != 0 && max(put.Revision, 0) != stands.Revision {
				return store.Lane{}, store.ErrVersion
			}
			lane := store.Lane{Queue: put.Queue}
			if !settings.IsZero() {
				lane.Settings, lane.Revision = settings, max(tx.mem.laneRevision+1, tx.now.Millis)
			}
			return lane, tx.putLane(lane, encoded)
		})
		return err
	}})
	if err != nil {
		return store.Lane{}, err
	}
	return answer, nil
}

// putLane stores settings, or with revision 0 removes them, and looks at the lane again: it may have been freed or
// blocked.
func (tx *tx) putLane(lane store.Lane, encoded string) error {
	name := lane.Queue
	if lane.Revision == 0 {
		if err := tx.Exec(table.DeleteLane, name.Namespace, name.Topic, name.Lane); err != nil {
			return err
		}
	} else {
		if err := tx.Exec(table.InsertLane, name.Namespace, name.Topic, name.Lane, lane.Revision, encoded); err != nil {
			return err
		}
		if err := tx.Exec(table.UpdateMeta, lane.Revision, "lane_revision"); err != nil {
			return err
		}
		tx.mem.laneRevision, tx.mem.lanes = lane.Revision, true
	}
	q := tx.mem.queues[name]
	if q == nil {
		return nil
	}
	tx.setLaneConfig(q, lane.Revision, lane.Settings.Limits())
	tx.mayBeNewHead = true
	if q.waiting > 0 {
		tx.toPlan = append(tx.toPlan, q)
		tx.notify(q)
	}
	return nil
}

// setLaneConfig sets the settings of a queue's lane; with revision 0 there are none, and its topic's policy applies.
func (tx *tx) setLaneConfig(q *queue, revision int64, own policy.Limits) {
	save(tx, &q.laneConfig)
	q.laneConfig = nil
	if revision != 0 {
		q.laneConfig = newLaneConfig(q.topic, revision, own)
	}
}

func newLaneConfig(t *topic, revision int64, own policy.Limits) *laneConfig {
	return &laneConfig{revision: revision, own: own, limits: own.Over(*t.limits)}
}

// unreadableLaneConfig pauses a lane whose settings cannot be read: they may have paused it.
func (s *Store) unreadableLaneConfig(q *queue, revision int64, err error) *laneConfig {
	s.log.Error("lane settings unreadable, treating the lane as paused: put its settings again",
		"topic", q.name.Topic, "lane", q.name.Lane, "err", err)
	own := newLaneConfig(q.topic, revision, policy.Limits{Paused: true})
	own.unreadable = true
	return own
}

// loadLaneConfig reads the settings of a queue that is loaded; nil when its lane has none.
func (tx *tx) loadLaneConfig(q *queue) (*laneConfig, error) {
	lane, err := tx.lane(q.name)
	if table.IsUnreadable(err) {
		return tx.store.unreadableLaneConfig(q, lane.Revision, err), nil
	}
	if err != nil || lane.Revision == 0 {
		return nil, err
	}
	return newLaneConfig(q.topic, lane.Revision, lane.Settings.Limits()), nil
}

// lane reads a lane's own settings; revision 0 where there are none.
func (tx *tx) lane(name job.Queue) (store.Lane, error) {
	lane := store.Lane{Queue: name}
	if !tx.mem.lanes {
		return lane, nil
	}
	err := readLane(context.Background(), tx.Conn, &lane)
	return lane, err
}

// readLane reads a lane's settings. Of unreadable settings it fills in the revision, and returns an unreadableError.
func readLane(ctx context.Context, c *db.Conn, lane *store.Lane) error {
	return c.Query(ctx, table.FindLane, func(v []driver.Value) (err error) {
		lane.Revision = db.Int(v[0])
		if lane.Settings, err = parseLane(lane.Queue, db.Text(v[1])); err != nil {
			return db.NewError(table.Unreadable(err))
		}
		return nil
	}, lane.Queue.Namespace, lane.Queue.Topic, lane.Queue.Lane)
}

func parseLane(name job.Queue, stored string) (settings policy.Lane, err error) {
	if err := json.Unmarshal([]byte(stored), &settings); err != nil {
		return policy.Lane{}, fmt.Errorf("read the settings of lane %s: %w", name, err)
	}
	return settings, nil
}

// showLaneConfig adds settings that the caller of a claim does not know to its reply. Unreadable settings are not added, and
// block the queue from now on.
func (tx *tx) showLaneConfig(q *queue, want store.QueueClaim, left *store.QueueStatus) error {
	known := int64(0)
	if q.laneConfig != nil {
		known = q.laneConfig.revision
	}
	if known == want.Lane || (q.laneConfig != nil && q.laneConfig.unreadable) {
		return nil
	}
	lane, err := tx.lane(q.name)
	if table.IsUnreadable(err) {
		save(tx, &q.laneConfig)
		q.laneConfig = tx.store.unreadableLaneConfig(q, lane.Revision, err)
		tx.toPlan = append(tx.toPlan, q)
		return nil
	}
	left.Lane = &lane
	return err
}

// statusOfUnloaded answers a Want of a lane that is not in memory, since nothing waits in it or keeps it back.
func (tx *tx) statusOfUnloaded(want store.QueueClaim, left *store.QueueStatus) error {
	lane, err := tx.lane(want.Queue)
	if table.IsUnreadable(err) {
		left.Blocked = true // logged when a job comes to wait in it
		return nil
	}
	if err != nil {
		return err
	}
	if lane.Revision != want.Lane {
		left.Lane = &lane
	}
	topic := &tx.store.defaults
	if t := tx.mem.topics[topicName{want.Queue.Namespace, want.Queue.Topic}]; t != nil {
		topic = t.limits
	}
	left.Blocked = lane.Settings.Paused || topic.Paused
	return nil
}

// GetLanes implements store.Shard.
func (s *Store) GetLanes(ctx context.Context, queues []job.Queue) ([]store.Lane, error) {
	bound("lanes", len(queues))
	lanes := make([]store.Lane, len(queues))
	err := s.db.Read(ctx, "read lanes' settings", func(ctx context.Context, c *db.Conn) error {
		for i, name := range queues {
			lanes[i] = store.Lane{Queue: name}
			if err := readLane(ctx, c, &lanes[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return lanes, nil
}

// ListLanes implements store.Shard.
func (s *Store) ListLanes(ctx context.Context, namespace, topic, after string, limit int) ([]store.Lane, error) {
	bound("lanes", limit)
	var lanes []store.Lane
	err := s.db.Read(ctx, "list lanes' settings", func(ctx context.Context, c *db.Conn) error {
		return c.Query(ctx, table.LanesAfter, func(v []driver.Value) (err error) {
			lane := store.Lane{Queue: job.Queue{Namespace: namespace, Topic: topic, Lane: db.Text(v[0])}, Revision: db.Int(v[1])}
			if lane.Settings, err = parseLane(lane.Queue, db.Text(v[2])); err != nil {
				return db.NewError(err)
			}
			lanes = append(lanes, lane)
			return nil
		}, namespace, topic, after, int64(max(0, limit)))
	})
	if err != nil {
		return nil, err
	}
	return lanes, nil
}
