package sqlite

import (
	"database/sql/driver"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// queue finds a lane, and makes it when it is new.
func (tx *tx) queue(name job.Queue) (*memory.Queue, error) {
	if q := tx.mem.Queues[name]; q != nil {
		return q, nil
	}
	q, err := tx.loadQueue(name)
	if err != nil || q != nil {
		return q, err
	}
	t, err := tx.topic(memory.TopicName{Namespace: name.Namespace, Name: name.Topic})
	if err != nil {
		return nil, err
	}
	tx.mem.LastQ++
	q = &memory.Queue{Id: tx.mem.LastQ, Name: name, Topic: t}
	if err := tx.Exec(table.InsertQueue, q.Id, name.Namespace, name.Topic, name.Lane); err != nil {
		return nil, err
	}
	q.HeadKnown = true
	if q.LaneConfig, err = tx.loadLaneConfig(q); err != nil {
		return nil, err
	}
	tx.remember(q)
	return q, nil
}

// loadQueue reads a lane that was unloaded; nil when there is none.
func (tx *tx) loadQueue(name job.Queue) (*memory.Queue, error) {
	if q := tx.mem.Queues[name]; q != nil {
		return q, nil
	}
	var q *memory.Queue
	err := tx.Query(table.FindQueue, func(v []driver.Value) error {
		q = &memory.Queue{Id: db.Int(v[0]), Name: name}
		q.Waiting, q.Rows = db.Int(v[1]), db.Int(v[2])
		q.Throttle = tx.store.parseThrottle(name, v[3], tx.now)
		return nil
	}, name.Namespace, name.Topic, name.Lane)
	if err != nil || q == nil {
		return nil, err
	}
	if q.Topic, err = tx.topic(memory.TopicName{Namespace: name.Namespace, Name: name.Topic}); err != nil {
		return nil, err
	}
	q.HeadKnown = q.Waiting == 0
	if q.LaneConfig, err = tx.loadLaneConfig(q); err != nil {
		return nil, err
	}
	tx.remember(q)
	return q, nil
}

// remember adds a queue to memory.
func (tx *tx) remember(q *memory.Queue) {
	m := tx.mem
	m.Add(q)
	tx.undo(func() { m.Forget(q) })
}

// topic finds a topic, and makes it when it is new.
func (tx *tx) topic(name memory.TopicName) (*memory.Topic, error) {
	if t := tx.mem.Topics[name]; t != nil {
		return t, nil
	}
	tx.mem.LastT++
	t := memory.NewTopic(tx.mem.LastT, name, &tx.store.defaults)
	if err := tx.Exec(table.InsertTopic, t.Id, name.Namespace, name.Name); err != nil {
		return nil, err
	}
	tx.mem.Topics[name] = t
	tx.undo(func() { delete(tx.mem.Topics, name) })
	return t, nil
}
