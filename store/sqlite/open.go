package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/ringback/ringback/job"
)

// recall fills memory from the database, and ends the attempts that the last process left behind. It reads a row a
// topic and a row a pending lane, whatever the number of jobs.
func (s *Store) recall(ctx context.Context) error {
	m := s.mem
	err := s.conn.query(ctx, readMeta, func(v []driver.Value) error {
		m.revision = integer(v[0])
		return nil
	}, "revision")
	if err != nil {
		return err
	}
	if err := s.conn.query(ctx, lastNumbers, func(v []driver.Value) error {
		m.lastN, m.lastQ, m.lastT = integer(v[0]), integer(v[1]), integer(v[2])
		return nil
	}); err != nil {
		return err
	}
	if err := s.conn.query(ctx, countOutbox, func(v []driver.Value) error {
		m.outbox = integer(v[0])
		return nil
	}); err != nil {
		return err
	}
	if err := s.conn.query(ctx, allTopics, s.recallTopic); err != nil {
		return err
	}
	if _, err := s.conn.exec(unusedQueues); err != nil {
		return err
	}
	if err := s.conn.query(ctx, pendingQueues, s.recallQueue); err != nil {
		return err
	}
	return s.recallHeld()
}

func (s *Store) recallTopic(v []driver.Value) error {
	t := newTopic(integer(v[0]), topicName{text(v[1]), text(v[2])}, s.defaults)
	t.registered, t.delivered, t.dead, t.cancelled = integer(v[5]), integer(v[6]), integer(v[7]), integer(v[8])
	t.done = shelf{jobs: integer(v[9]), bytes: integer(v[10])}
	t.dying = shelf{jobs: integer(v[11]), bytes: integer(v[12])}
	t.ids = integer(v[13])
	s.mem.ids += t.ids
	s.mem.topics[t.name] = t
	return t.readPolicy(text(v[3]), integer(v[4]), s.defaults)
}

func (s *Store) recallQueue(v []driver.Value) error {
	q := &queue{id: integer(v[0]), name: job.Queue{Namespace: text(v[1]), Topic: text(v[2]), Lane: text(v[3])}}
	q.waiting, q.running, q.rows = integer(v[4]), integer(v[5]), integer(v[6])
	q.topic = s.mem.topics[topicName{q.name.Namespace, q.name.Topic}]
	q.topic.waiting += q.waiting
	q.topic.running += q.running
	s.mem.add(q)
	return nil
}

// recallBatch is how many held jobs one transaction puts back.
const recallBatch = 1024

// recallHeld puts every job back that was held: whoever held it is gone. Then it plans every queue.
func (s *Store) recallHeld() error {
	for _, q := range s.mem.queues {
		for q.running > 0 {
			var lost int
			err := s.commit([]*op{{durable: true, run: func(tx *tx) (err error) {
				lost, err = tx.loseRunning(q)
				return err
			}}})
			if err != nil {
				return err
			}
			if lost == 0 {
				break
			}
		}
	}
	return s.commit([]*op{{run: func(tx *tx) error {
		for _, q := range s.mem.queues {
			tx.look = append(tx.look, q)
		}
		return nil
	}}})
}

// loseRunning ends some attempts of a queue as lost.
func (tx *tx) loseRunning(q *queue) (lost int, err error) {
	var rows []*row
	var claimed []int64
	err = tx.query(runningJobs, func(v []driver.Value) error {
		r, err := decode(v, false)
		rows, claimed = append(rows, r), append(claimed, integer(v[columnCount]))
		return err
	}, q.id, int64(recallBatch))
	if err != nil {
		return 0, err
	}
	for i, r := range rows {
		h := &held{ref: r.Ref(), n: r.n, queue: q, claimed: claimed[i], slot: slot{pos: -1}, standing: r.standing()}
		// When the process died is not known, so the attempt has no duration.
		if err := tx.lapse(h, 0); err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}
