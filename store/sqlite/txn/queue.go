package txn

import (
	"database/sql/driver"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// Queue finds a lane, and makes it when it is new.
func (tx *Tx) Queue(name job.Queue) (*memory.Queue, error) {
	if q := tx.Mem.Queues[name]; q != nil {
		return q, nil
	}
	q, err := tx.LoadQueue(name)
	if err != nil || q != nil {
		return q, err
	}
	t, err := tx.Topic(memory.TopicName{Namespace: name.Namespace, Name: name.Topic})
	if err != nil {
		return nil, err
	}
	tx.Mem.LastQ++
	q = &memory.Queue{Id: tx.Mem.LastQ, Name: name, Topic: t}
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

// LoadQueue reads a lane that was unloaded; nil when there is none.
func (tx *Tx) LoadQueue(name job.Queue) (*memory.Queue, error) {
	if q := tx.Mem.Queues[name]; q != nil {
		return q, nil
	}
	var q *memory.Queue
	err := tx.Query(table.FindQueue, func(v []driver.Value) error {
		q = &memory.Queue{Id: db.Int(v[0]), Name: name}
		q.Waiting, q.Rows = db.Int(v[1]), db.Int(v[2])
		q.Throttle = tx.Base.ParseThrottle(name, v[3], tx.Now)
		return nil
	}, name.Namespace, name.Topic, name.Lane)
	if err != nil || q == nil {
		return nil, err
	}
	if q.Topic, err = tx.Topic(memory.TopicName{Namespace: name.Namespace, Name: name.Topic}); err != nil {
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
func (tx *Tx) remember(q *memory.Queue) {
	m := tx.Mem
	m.Add(q)
	tx.OnUndo(func() { m.Forget(q) })
}

// Topic finds a topic, and makes it when it is new.
func (tx *Tx) Topic(name memory.TopicName) (*memory.Topic, error) {
	if t := tx.Mem.Topics[name]; t != nil {
		return t, nil
	}
	tx.Mem.LastT++
	t := memory.NewTopic(tx.Mem.LastT, name, tx.Base.Defaults)
	if err := tx.Exec(table.InsertTopic, t.Id, name.Namespace, name.Name); err != nil {
		return nil, err
	}
	tx.Mem.Topics[name] = t
	tx.OnUndo(func() { delete(tx.Mem.Topics, name) })
	return t, nil
}

// LoadHead makes sure that the head of a queue is known.
func (tx *Tx) LoadHead(q *memory.Queue) error {
	if q.HeadKnown || q.Damaged {
		return nil
	}
	_, err := tx.FirstWaiting(q, 1)
	return err
}

// FirstWaiting reads the keys of the first jobs that wait in a queue, at most most and none after one that is not due. The first
// is the queue's head. It reads past leased jobs, of which a lane has no more than its limit, and past those that cannot be read.
func (tx *Tx) FirstWaiting(q *memory.Queue, most int) (keys []table.Key, err error) {
	err = tx.Query(table.FirstWaiting, func(v []driver.Value) error {
		k := table.Key{Due: db.Int(v[0]), N: db.Int(v[1])}
		if tx.Mem.IsSkipped(k.N) {
			return nil
		}
		if keys = append(keys, k); len(keys) == most || k.Due > tx.Now.Millis {
			return db.ErrStop
		}
		return nil
	}, q.Id, q.Head.Due, q.Head.N) // known or not, nothing waits before the head
	if db.IsDamage(err) {
		tx.SetAside(q, "look for the first jobs of a lane", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	head := memory.NoHead
	if len(keys) > 0 {
		head = keys[0]
	}
	if !q.HeadKnown || q.Head != head {
		tx.Touch(q)
		q.Head, q.HeadKnown = head, true
	}
	return keys, nil
}

// Arrive counts a job that begins to wait, and sends a wake-up when it is due and the first that is. Where the head was not known
// it may be the job itself, which the database has already.
func (tx *Tx) Arrive(q *memory.Queue, k table.Key) error {
	if err := tx.LoadHead(q); err != nil {
		return err
	}
	tx.Touch(q)
	first := !q.Due(tx.Now) || q.Head == k
	isDue := k.Due <= tx.Now.Millis
	if q.Waiting == 0 || k.Before(q.Head) {
		q.Head = k
	}
	if isDue && first && !q.Blocked(tx.Now) && q.Mark.Before(k) {
		q.Mark = k
	}
	q.Waiting++
	q.Topic.Waiting++
	if !q.Mark.Before(k) {
		q.Ready++
		q.Topic.Ready++
	}
	if isDue && first {
		tx.Notify(q)
	}
	return nil
}

// Leave counts a job that waits no longer, other than by a claim.
func (tx *Tx) Leave(q *memory.Queue, k table.Key) {
	tx.Touch(q)
	q.Waiting--
	q.Topic.Waiting--
	if !q.Mark.Before(k) {
		q.Ready--
		q.Topic.Ready--
	}
	if q.HeadKnown && q.Head == k {
		q.HeadKnown = q.Waiting == 0
	}
}
