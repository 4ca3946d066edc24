package unit

import (
	"database/sql/driver"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// Queue finds a lane, and makes it when it is new.
func (u *Unit) Queue(name job.Queue) (*memory.Queue, error) {
	if q := u.Mem.Queues[name]; q != nil {
		return q, nil
	}
	q, err := u.LoadQueue(name)
	if err != nil || q != nil {
		return q, err
	}
	t, err := u.Topic(memory.TopicName{Namespace: name.Namespace, Name: name.Topic})
	if err != nil {
		return nil, err
	}
	u.Mem.LastQ++
	q = &memory.Queue{Id: u.Mem.LastQ, Name: name, Topic: t}
	if err := u.Exec(table.InsertQueue, q.Id, name.Namespace, name.Topic, name.Lane); err != nil {
		return nil, err
	}
	q.HeadKnown = true
	if q.LaneConfig, err = u.loadLaneConfig(q); err != nil {
		return nil, err
	}
	u.remember(q)
	return q, nil
}

// LoadQueue reads a lane that was unloaded; nil if the lane does not exist.
func (u *Unit) LoadQueue(name job.Queue) (*memory.Queue, error) {
	if q := u.Mem.Queues[name]; q != nil {
		return q, nil
	}
	var q *memory.Queue
	err := u.Query(table.FindQueue, func(v []driver.Value) error {
		q = &memory.Queue{Id: db.Int(v[0]), Name: name}
		q.Waiting, q.Rows = db.Int(v[1]), db.Int(v[2])
		q.Throttle, q.Health = u.Env.ParseThrottle(name, v[3], u.Now), ParseHealth(v[4])
		return nil
	}, name.Namespace, name.Topic, name.Lane)
	if err != nil || q == nil {
		return nil, err
	}
	if q.Topic, err = u.Topic(memory.TopicName{Namespace: name.Namespace, Name: name.Topic}); err != nil {
		return nil, err
	}
	q.HeadKnown = q.Waiting == 0
	if q.LaneConfig, err = u.loadLaneConfig(q); err != nil {
		return nil, err
	}
	u.remember(q)
	return q, nil
}

// remember adds a queue to memory.
func (u *Unit) remember(q *memory.Queue) {
	m := u.Mem
	m.AddQueue(q)
	u.OnUndo(func() { m.RemoveQueue(q) })
}

// Topic finds a topic, and makes it when it is new.
func (u *Unit) Topic(name memory.TopicName) (*memory.Topic, error) {
	if t := u.Mem.Topics[name]; t != nil {
		return t, nil
	}
	u.Mem.LastT++
	t := memory.NewTopic(u.Mem.LastT, name, u.Env.Defaults)
	if err := u.Exec(table.InsertTopic, t.Id, name.Namespace, name.Name); err != nil {
		return nil, err
	}
	u.Mem.Topics[name] = t
	u.OnUndo(func() { delete(u.Mem.Topics, name) })
	return t, nil
}

// LoadHead reads the head of a queue unless it is known.
func (u *Unit) LoadHead(q *memory.Queue) error {
	// then nothing else is claimed, and the head is found at its end
	if q.HeadKnown || q.Limits().Ordered && q.Running > 0 {
		return nil
	}
	_, err := u.FirstWaiting(q, 1)
	return err
}

// FirstWaiting reads the keys of the first jobs that wait in a queue, at most most and nothing after one that is not
// due. The first is the queue's head. It reads past leased jobs, of which a lane has no more than its limit.
func (u *Unit) FirstWaiting(q *memory.Queue, most int) (keys []table.Key, err error) {
	if q.Limits().Ordered {
		return u.firstInTurn(q)
	}
	err = u.Query(table.FirstWaiting, func(v []driver.Value) error {
		k := table.Key{Due: db.Int(v[0]), N: db.Int(v[1])}
		if u.Mem.IsLeased(k.N) {
			return nil
		}
		if keys = append(keys, k); len(keys) == most || k.Due > u.Now.Millis {
			return db.ErrStop
		}
		return nil
	}, q.Id, q.Head.Due, q.Head.N) // known or not, nothing waits before the head
	if err != nil {
		return nil, err
	}
	head := memory.NoHead
	if len(keys) > 0 {
		head = keys[0]
	}
	if !q.HeadKnown || q.Head != head {
		u.Touch(q)
		q.Head, q.HeadKnown = head, true
	}
	return keys, nil
}

// AddWaiting counts a job that begins to wait, and sends a wake-up when it is due and the first that is. Where the head
// was not known it may be the job itself, which the database has already.
func (u *Unit) AddWaiting(q *memory.Queue, k table.Key) error {
	if q.Limits().Ordered {
		u.addOrdered(q, k)
		return nil
	}
	if err := u.LoadHead(q); err != nil {
		return err
	}
	u.Touch(q)
	first := !q.Due(u.Now) || q.Head == k
	isDue := k.Due <= u.Now.Millis
	if q.Waiting == 0 || k.Before(q.Head) {
		q.Head = k
	}
	if isDue && first && !q.Blocked(u.Now) && q.Mark.Before(k) {
		q.Mark = k
	}
	q.Waiting++
	q.Topic.Waiting++
	if !q.Mark.Before(k) {
		q.Ready++
		q.Topic.Ready++
	}
	if isDue && first {
		u.Notify(q)
	}
	return nil
}

// RemoveWaiting counts a job that waits no longer, other than by a claim.
func (u *Unit) RemoveWaiting(q *memory.Queue, k table.Key) {
	u.Touch(q)
	q.Waiting--
	q.Topic.Waiting--
	if !q.Mark.Before(k) {
		q.Ready--
		q.Topic.Ready--
	}
	if q.HeadKnown && (q.Head == k || q.Limits().Ordered) {
		q.HeadKnown = q.Waiting == 0
	}
}

// MarkReady counts waiting jobs that became due as ready, at most most of them.
func (u *Unit) MarkReady(q *memory.Queue, most int) (int, error) {
	if most <= 0 || q.Ready >= q.Waiting {
		return 0, nil
	}
	count, leased, last := 0, 0, q.Mark
	next := func(v []driver.Value) error {
		count++
		last = table.Key{Due: db.Int(v[0]), N: db.Int(v[1])}
		if u.Mem.IsLeased(last.N) {
			leased++ // ClaimExpired has claimed it
		}
		return nil
	}
	// First the jobs that are due at the mark's time, then the later ones.
	err := u.Query(table.WaitingAt, next, q.Id, q.Mark.Due, q.Mark.N, u.Now.Millis, int64(most))
	if err == nil && count < most {
		err = u.Query(table.WaitingAfter, next, q.Id, q.Mark.Due, u.Now.Millis, int64(most-count))
	}
	if err != nil || count == 0 {
		return 0, err
	}
	u.Touch(q)
	q.Mark = last
	q.Ready += int64(count - leased)
	q.Topic.Ready += int64(count - leased)
	return count, nil
}
