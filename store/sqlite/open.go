package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/throttle"
)

// load fills memory from the database, and ends the attempts that the last process left behind. It reads a row per
// topic, per lane that is pending or throttled (with its settings) and per claimed job, but no other jobs.
func (s *Store) load(ctx context.Context) error {
	m := s.mem
	if err := s.db.Conn().Query(ctx, table.AllMeta, func(v []driver.Value) error {
		m.revisions[db.Text(v[0])] = db.Int(v[1])
		return nil
	}); err != nil {
		return err
	}
	if err := s.db.Conn().Query(ctx, table.LastNumbers, func(v []driver.Value) error {
		m.lastN, m.lastQ, m.lastT, m.lastFirstAttempt = db.Int(v[0]), db.Int(v[1]), db.Int(v[2]), db.Int(v[3])
		return nil
	}); err != nil {
		return err
	}
	m.steps = clock.NewSteps(s.clock(), m.lastN+1)
	if err := s.db.Conn().Query(ctx, table.CountOutbox, func(v []driver.Value) error {
		m.outbox = db.Int(v[0])
		return nil
	}); err != nil {
		return err
	}
	if err := s.db.Conn().Query(ctx, table.AllTopics, s.loadTopic); err != nil {
		return err
	}
	if _, err := s.db.Conn().Exec(table.UnusedQueues); err != nil {
		return err
	}
	for _, which := range []db.Statement{table.PendingQueues, table.ThrottledQueues} {
		if err := s.db.Conn().Query(ctx, which, s.loadQueue); err != nil {
			return err
		}
	}
	return s.expireOldLeases()
}

func (s *Store) loadTopic(v []driver.Value) error {
	c := table.Cells(v)
	t := newTopic(c.Int(), topicName{c.Text(), c.Text()}, &s.defaults)
	limits, revision := c.Text(), c.Int()
	t.registered, t.delivered, t.dead, t.cancelled = c.Int(), c.Int(), c.Int(), c.Int()
	t.keptDone = retained{jobs: c.Int(), bytes: c.Int()}
	t.keptDead = retained{jobs: c.Int(), bytes: c.Int()}
	t.ids = c.Int()
	t.alarm = c.Int() != 0
	var err error
	if t.grants, err = throttle.ParseGrants(c.Next(), s.clock()); err != nil {
		s.log.Error("topic permits unreadable, dropping them", "topic", t.name.name, "err", err)
	}
	s.mem.ids += t.ids
	s.mem.topics[t.name] = t
	key := store.DocumentKey{Kind: store.KindTopic, Namespace: t.name.namespace, Name: t.name.name}
	t.setLimits(revision, s.parseLimits(key, limits), &s.defaults)
	return nil
}

func (s *Store) loadQueue(v []driver.Value) error {
	c := table.Cells(v)
	q := &queue{id: c.Int(), name: job.Queue{Namespace: c.Text(), Topic: c.Text(), Lane: c.Text()}}
	if s.mem.byID[q.id] != nil {
		return nil
	}
	q.waiting, q.rows = c.Int(), c.Int()
	q.topic = s.mem.topics[topicName{q.name.Namespace, q.name.Topic}]
	q.topic.waiting += q.waiting
	q.throttle = s.parseThrottle(q.name, c.Next(), s.clock())
	revision := c.Int()
	q.laneConfig = newLaneConfig(q.topic, revision, s.parseLimits(store.LaneKey(q.name), c.Text()))
	q.headKnown = q.waiting == 0
	s.mem.add(q)
	setMember(s.mem.unused, q, q.rows == 0)
	return nil
}

// throttle reads a queue's stored throttle. An unreadable one is logged and dropped.
func (s *Store) parseThrottle(name job.Queue, column driver.Value, now clock.Instant) *throttle.Throttle {
	g, err := throttle.Parse(column, now)
	if err != nil {
		s.log.Error("lane throttle unreadable, dropping its cooldown and rate", "topic", name.Topic, "lane", name.Lane, "err", err)
	}
	return g
}

// expireBatch is how many leases one transaction ends, of however many lanes.
const expireBatch = 1024

// expireOldLeases ends the leases of the last process, and plans every queue. It does not wait for
// the disk: after a power cut the next Open repeats it.
func (s *Store) expireOldLeases() error {
	var batches []*batch
	if err := s.db.Conn().Query(context.Background(), table.ReadLeases, func(v []driver.Value) error {
		b := &batch{number: db.Int(v[0]), claimed: db.Int(v[1])}
		var err error
		if b.marks, err = parseMarks(db.Text(v[2])); err != nil {
			s.log.Error("row of a claim unreadable, its attempts are not recorded as lost", "claim", b.number, "err", err)
		}
		batches = append(batches, b)
		return nil
	}); err != nil {
		return err
	}
	for len(batches) > 0 {
		before := batches
		err := s.commitAlone(func(tx *tx) error {
			batches = before
			for most := expireBatch; most > 0 && len(batches) > 0; batches = batches[1:] {
				if err := tx.expireOldBatch(batches[0]); err != nil {
					return err
				}
				most -= len(batches[0].marks)
			}
			return nil
		})
		if db.IsDamage(err) {
			batches = before[1:]
			err = s.expireEach(before[0])
		}
		if err != nil {
			return err
		}
	}
	return s.commitAlone(func(tx *tx) error {
		for _, q := range s.mem.queues {
			tx.toPlan = append(tx.toPlan, q)
		}
		return nil
	})
}

// commitAlone runs a transaction before the writer is started.
func (s *Store) commitAlone(run func(*tx) error) error { return s.db.Alone(&op{Run: run}) }

// expireOldBatch ends the attempts of a batch as lost.
func (tx *tx) expireOldBatch(b *batch) error {
	for _, m := range b.marks {
		var r *table.Row
		if err := tx.Query(table.HeadByN, func(v []driver.Value) error {
			r = (*table.Cells)(&v).Row()
			return nil
		}, m.n); err != nil {
			return err
		}
		q := tx.mem.byID[m.q]
		if r == nil || q == nil || r.State != job.Scheduled {
			continue // only where a page was damaged
		}
		// It was counted among the waiting.
		tx.leave(q, r.Key())
		q.running++
		q.topic.running++
		h := &lease{ref: r.Ref(), n: r.N, queue: q, claimed: b.claimed, slot: slot{pos: -1}, Progress: r.Progress()}
		if err := tx.expireLease(h, 0); err != nil {
			return err
		}
	}
	return tx.Exec(table.DeleteLeases, b.number)
}

// expireEach is loseBatch for jobs of which some cannot be read, or written, because of a damaged page: they are passed over.
func (s *Store) expireEach(b *batch) error {
	for _, m := range b.marks {
		err := s.commitAlone(func(tx *tx) error { return tx.expireOldBatch(&batch{claimed: b.claimed, marks: []mark{m}}) })
		if db.IsDamage(err) {
			err = s.commitAlone(func(tx *tx) error {
				if q := tx.mem.byID[m.q]; q != nil {
					tx.skipJob(q, m.n, "end a lost attempt", errDamagedPage)
				}
				return nil
			})
		}
		if err != nil {
			return err
		}
	}
	return s.commitAlone(func(tx *tx) error { return tx.Exec(table.DeleteLeases, b.number) })
}
