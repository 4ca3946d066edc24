package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// load fills memory from the database, and ends the attempts that the last process left behind. It reads a row per
// topic, per lane that is pending, throttled or has health (with its settings) and per claimed job, but no other jobs.
func (s *Store) load(ctx context.Context) error {
	m := s.mem
	if err := s.db.Conn().Query(ctx, table.AllMeta, func(v []driver.Value) error {
		m.Revisions[db.Text(v[0])] = db.Int(v[1])
		return nil
	}); err != nil {
		return err
	}
	if err := s.db.Conn().Query(ctx, table.LastNumbers, func(v []driver.Value) error {
		m.LastN, m.LastQ, m.LastT, m.LastFirstAttempt = db.Int(v[0]), db.Int(v[1]), db.Int(v[2]), db.Int(v[3])
		m.StoredReplies.Last = db.Int(v[4])
		return nil
	}); err != nil {
		return err
	}
	m.StoredReplies.Mark(s.clock().Mono)
	if err := s.loadReplies(ctx); err != nil {
		return err
	}
	m.StepsAhead = m.Revisions[table.StepsAhead]
	m.Steps = clock.NewSteps(s.clock(), m.LastN+1, m.StepsAhead)
	if err := s.db.Conn().Query(ctx, table.CountOutbox, func(v []driver.Value) error {
		m.Outbox = db.Int(v[0])
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
	for _, which := range []db.Statement{table.PendingQueues, table.ThrottledQueues, table.UnhealthyQueues} {
		if err := s.db.Conn().Query(ctx, which, s.loadQueue); err != nil {
			return err
		}
	}
	return s.expireOldLeases()
}

// loadReplies reads what was answered to settlements that clients may repeat.
func (s *Store) loadReplies(ctx context.Context) error {
	return s.db.Conn().Query(ctx, table.AllReplies, func(v []driver.Value) error {
		s.mem.SharedReplies.Restore(db.Text(v[0]), s.clock().Mono)
		return nil
	})
}

func (s *Store) loadTopic(v []driver.Value) error {
	c := table.Cells(v)
	t := memory.NewTopic(c.Int(), memory.TopicName{Namespace: c.Text(), Name: c.Text()}, s.env.Defaults)
	limits, revision := c.Text(), c.Int()
	t.Registered, t.Delivered, t.Dead, t.Cancelled, t.Bytes = c.Int(), c.Int(), c.Int(), c.Int(), c.Int()
	t.KeptDone = memory.Retained{Jobs: c.Int(), Bytes: c.Int()}
	t.KeptDead = memory.Retained{Jobs: c.Int(), Bytes: c.Int()}
	t.Ids = c.Int()
	t.Alarm = c.Int() != 0
	var err error
	if t.Grants, err = memory.ParseGrants(c.Next(), s.mem.Steps.Stored(s.clock())); err != nil {
		s.env.Log.Error("topic permits unreadable, dropping them", "topic", t.Name.Name, "err", err)
	}
	s.mem.Ids += t.Ids
	s.mem.Topics[t.Name] = t
	key := store.DocumentKey{Kind: store.KindTopic, Namespace: t.Name.Namespace, Name: t.Name.Name}
	t.SetLimits(revision, s.env.ParseLimits(key, limits), s.env.Defaults)
	return nil
}

func (s *Store) loadQueue(v []driver.Value) error {
	c := table.Cells(v)
	q := &memory.Queue{Id: c.Int(), Name: job.Queue{Namespace: c.Text(), Topic: c.Text(), Lane: c.Text()}}
	if s.mem.ByID[q.Id] != nil {
		return nil
	}
	q.Waiting, q.Rows = c.Int(), c.Int()
	q.Topic = s.mem.Topics[memory.TopicName{Namespace: q.Name.Namespace, Name: q.Name.Topic}]
	q.Topic.Waiting += q.Waiting
	q.Throttle, q.Health = s.env.ParseThrottle(q.Name, c.Next(), s.clock()), unit.ParseHealth(c.Next())
	revision := c.Int()
	q.LaneConfig = memory.NewLaneConfig(q.Topic, revision, s.env.ParseLimits(store.LaneKey(q.Name), c.Text()))
	q.HeadKnown = q.Waiting == 0
	s.mem.AddQueue(q)
	memory.SetMember(s.mem.Unused, q, q.Rows == 0)
	return nil
}

// expireBatch is how many leases one transaction ends, of however many lanes.
const expireBatch = 1024

// expireOldLeases ends the leases of the last process, and plans every queue. It does not wait for
// the disk: after a power cut the next Open repeats it.
func (s *Store) expireOldLeases() error {
	var batches []*memory.Batch
	if err := s.db.Conn().Query(context.Background(), table.ReadLeases, func(v []driver.Value) error {
		b := &memory.Batch{Number: db.Int(v[0]), Claimed: db.Int(v[1])}
		var err error
		if b.Marks, err = table.ParseMarks(db.Text(v[2])); err != nil {
			s.env.Log.Error("row of a claim unreadable, its attempts are not recorded as lost",
				"claim", b.Number, "err", err)
		}
		batches = append(batches, b)
		return nil
	}); err != nil {
		return err
	}
	for len(batches) > 0 {
		if err := s.commitAlone(func(u *unit.Unit) error {
			for most := expireBatch; most > 0 && len(batches) > 0; batches = batches[1:] {
				if err := expireOldBatch(u, batches[0]); err != nil {
					return err
				}
				most -= len(batches[0].Marks)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return s.commitAlone(func(u *unit.Unit) error {
		for _, q := range s.mem.Queues {
			u.Plan(q)
		}
		return nil
	})
}

// commitAlone runs a transaction before the writer is started.
func (s *Store) commitAlone(run func(*unit.Unit) error) error { return s.db.Alone(&op{Run: run}) }

// expireOldBatch ends the attempts of a batch as lost.
func expireOldBatch(u *unit.Unit, b *memory.Batch) error {
	for _, m := range b.Marks {
		var r *table.Row
		if err := u.Query(table.JobWithoutBodyByN, func(v []driver.Value) error {
			r = (*table.Cells)(&v).Row()
			return nil
		}, m.N); err != nil {
			return err
		}
		q := u.Mem.ByID[m.Q]
		if r == nil || q == nil || r.State != job.Scheduled {
			continue // the file was changed by hand, or has lost the row
		}
		// It was counted as waiting: the database counts unfinished jobs.
		u.RemoveWaiting(q, r.Key())
		q.Running++
		q.Topic.Running++
		h := &memory.Lease{
			Ref: r.Ref(), N: r.N, Queue: q, Claimed: b.Claimed,
			Slot: memory.Slot{Pos: -1}, Progress: r.Progress(),
		}
		if err := u.ExpireLease(h, 0); err != nil {
			return err
		}
	}
	return u.Exec(table.DeleteLeases, b.Number)
}
