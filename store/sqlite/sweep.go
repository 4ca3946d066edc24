package sqlite

import (
	"context"
	"database/sql/driver"
	"maps"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// sweepMost bounds one Sweep whatever its limit: no other call is served meanwhile.
const sweepMost = 1024

// idleLook is how long a lane with nothing pending stays in memory at least. The next job of it reads it again.
const idleLook = time.Minute

// Sweep implements store.Shard. Topics within their bounds of retention cost nothing but a look at memory.
func (s *Store) Sweep(ctx context.Context, token store.Token, limit int) (store.SweepResult, error) {
	var swept store.SweepResult
	err := s.db.Submit(ctx, &op{Verb: "sweep", Weight: min(limit, sweepMost), Run: func(tx *tx) (err error) {
		swept, err = once(tx, memory.Call{Method: "sweep", Token: token}, light[store.SweepResult], func() (store.SweepResult, error) {
			return tx.sweep(min(limit, sweepMost))
		})
		return err
	}})
	if err != nil {
		return store.SweepResult{}, err
	}
	// Whatever made the pages free: settlements remove jobs too.
	if s.db.Vacuum(ctx) {
		swept.More = true
	}
	return swept, nil
}

func (tx *tx) sweep(limit int) (store.SweepResult, error) {
	var swept store.SweepResult
	for _, t := range tx.Mem.Topics {
		if t.Grants != nil && t.Grants.Expired(tx.Now) {
			tx.TouchTopic(t)
			t.Grants = nil
		}
		retain := func() error { return tx.retain(t, limit, &swept) }
		if err := tx.UnlessDamaged(&t.NoRetention, "remove ended jobs of topic "+t.Name.Name, retain); err != nil {
			return swept, err
		}
	}
	tx.forgetThrottles(limit)
	more := false
	err := tx.UnlessDamaged(&tx.Mem.NoRemoval, "remove unused lanes and topics", func() (err error) {
		more, err = tx.forget(limit)
		return err
	})
	swept.More = swept.More || more
	return swept, err
}

// retain removes what retention no longer keeps of a topic.
func (tx *tx) retain(t *memory.Topic, limit int, swept *store.SweepResult) error {
	for _, states := range [][]job.State{{job.Delivered, job.Cancelled}, {job.Dead}} {
		if err := tx.trim(t, states, limit, swept); err != nil {
			return err
		}
	}
	return tx.forgetIDs(t, limit, swept)
}

// forget removes unused lanes and topics; more says that there are others.
func (tx *tx) forget(limit int) (more bool, err error) {
	moreLanes, err := tx.forgetLanes(limit)
	if err != nil {
		return false, err
	}
	moreTopics, err := tx.forgetTopics(limit)
	return moreLanes || moreTopics, err
}

// forgetThrottles drops throttles that have expired.
func (tx *tx) forgetThrottles(limit int) {
	for q := range tx.Mem.Throttled {
		if limit--; limit < 0 {
			return
		}
		if q.Throttle != nil && q.ThrottleExpired(tx.Now) {
			tx.Touch(q)
			q.Throttle = nil
		}
	}
}

// over is how many retained jobs are beyond their number, or one where the oldest must go for its age or for bytes.
func (tx *tx) over(s *memory.Retained, keep policy.Retention) int64 {
	switch {
	case s.Jobs > *keep.Max:
		return s.Jobs - *keep.Max
	case s.Jobs > 0 && (s.Bytes > *keep.MaxBytes || s.Oldest+keep.For.Milliseconds() <= tx.Now.Millis):
		return 1
	default:
		return 0
	}
}

// trim removes the oldest retained jobs of some states until they are within their bounds.
func (tx *tx) trim(t *memory.Topic, states []job.State, limit int, swept *store.SweepResult) error {
	s, keep := t.Retained(states[0])
	if tx.over(s, keep) == 0 {
		return nil
	}
	ended, err := tx.oldestEnded(t, states, limit-swept.Jobs+1)
	if err != nil {
		return err
	}
	tx.TouchTopic(t)
	for i, r := range ended {
		s.Oldest = clock.Millis(r.FinishedAt)
		if tx.over(s, keep) == 0 {
			return nil
		}
		if swept.Jobs == limit {
			swept.More = true
			return nil
		}
		q, err := tx.LoadQueue(r.Queue)
		if err != nil {
			return err
		}
		if err := tx.Remove(q, r.Ref(), r.N, r.Progress(), r.State, r.Reason, s.Oldest); err != nil {
			return err
		}
		s.Jobs--
		s.Bytes -= r.Size()
		swept.Jobs++
		ended[i] = nil
	}
	if s.Jobs == 0 {
		s.Bytes = 0
	}
	return nil
}

// oldestEnded reads the oldest ended jobs in some states, by their end.
func (tx *tx) oldestEnded(t *memory.Topic, states []job.State, limit int) (ended []*table.Row, err error) {
	for _, state := range states {
		err := tx.Query(table.OldestEnded, func(v []driver.Value) error {
			c := table.Cells(v)
			r := c.Row()
			c.Names(r)
			ended = append(ended, r)
			return nil
		}, t.Id, string(state), int64(limit))
		if err != nil {
			return nil, err
		}
	}
	if len(states) > 1 {
		slices.SortStableFunc(ended, func(a, b *table.Row) int { return a.FinishedAt.Compare(b.FinishedAt) })
	}
	return ended[:min(len(ended), limit)], nil
}

// forgetIDs removes what need not be remembered any more.
func (tx *tx) forgetIDs(t *memory.Topic, limit int, swept *store.SweepResult) error {
	window := t.Limits.IDWindow.Milliseconds()
	if t.Ids == 0 || t.OldestID+window > tx.Now.Millis {
		return nil
	}
	type remembered struct {
		namespace, id string
		finished      int64
	}
	var oldest []remembered
	err := tx.Query(table.OldestIDs, func(v []driver.Value) error {
		oldest = append(oldest, remembered{db.Text(v[0]), db.Text(v[1]), db.Int(v[2])})
		return nil
	}, t.Id, int64(limit-swept.IDs+1))
	if err != nil {
		return err
	}
	tx.TouchTopic(t)
	for _, r := range oldest {
		t.OldestID = r.finished
		if r.finished+window > tx.Now.Millis {
			return nil
		}
		if swept.IDs == limit {
			swept.More = true
			return nil
		}
		if err := tx.Exec(table.DeleteID, r.namespace, r.id); err != nil {
			return err
		}
		t.Ids--
		tx.Mem.Ids--
		swept.IDs++
	}
	return nil
}

// forgetLanes removes lanes that no job refers to, at most limit, and unloads those that are idle. more says that there
// are others to remove.
func (tx *tx) forgetLanes(limit int) (more bool, err error) {
	m := tx.Mem
	for q := range m.Unused {
		if q.Rows > 0 || q.Throttle != nil || q.SavedIn == tx.Serial {
			continue
		}
		if limit--; limit < 0 {
			more = true
			break
		}
		if err := tx.Exec(table.DeleteQueue, q.Id); err != nil {
			return false, err
		}
		m.Forget(q)
		tx.OnUndo(func() {
			m.Add(q)
			m.Unused[q] = struct{}{}
		})
	}
	tx.unloadLanes()
	return more, nil
}

// unloadLanes drops lanes from memory that have been idle since the last check, a minute ago or more. A lane that is to be
// removed stays until it is: nothing would find its row before the next Open.
func (tx *tx) unloadLanes() {
	m := tx.Mem
	if tx.Now.Mono-m.IdleLooked < int64(idleLook) {
		return
	}
	m.IdleLooked = tx.Now.Mono
	before := len(m.Queues)
	for _, q := range m.Queues {
		switch {
		case q.Waiting > 0 || q.Running > 0 || q.Throttle != nil || q.SavedIn == tx.Serial:
			q.IdleIn = 0
		case q.Rows == 0:
			m.Unused[q] = struct{}{}
		case q.IdleIn == q.SavedIn+1:
			m.Forget(q)
		default:
			q.IdleIn = q.SavedIn + 1
		}
	}
	if len(m.Queues) < before/2 { // a map keeps the room that it once needed
		m.Queues, m.ByID = regrown(m.Queues), regrown(m.ByID)
	}
}

// regrown copies a map into a smaller one.
func regrown[K comparable, V any](m map[K]V) map[K]V {
	small := make(map[K]V, len(m))
	maps.Copy(small, m)
	return small
}

// forgotten is the name of the topic that has the counts of those that were forgotten. No job can name it.
const forgotten = ""

// forgetTopics forgets topics that nothing refers to, at most limit: no job, kept or not, no lane, no policy, no id that
// is remembered, no start that a rate counts and no alarm. Their counts are kept together. more says that there are others.
func (tx *tx) forgetTopics(limit int) (more bool, err error) {
	for name, t := range tx.Mem.Topics {
		if !t.Unused() || t.SavedIn == tx.Serial || name.Name == forgotten || tx.Now.Mono < t.InUseUntil {
			continue
		}
		if limit--; limit < 0 {
			return true, nil
		}
		gone, err := tx.Change(table.DeleteTopic, t.Id, name.Namespace, name.Name)
		if err != nil {
			return false, err
		}
		if gone == 0 { // it has lanes with settings: others are not kept from their turn by it, nor is Sweep called at once again
			t.InUseUntil = tx.Now.Mono + int64(idleLook)
			continue
		}
		delete(tx.Mem.Topics, name)
		tx.OnUndo(func() { tx.Mem.Topics[name] = t })
		if t.Registered == 0 {
			continue
		}
		sum, err := tx.Topic(memory.TopicName{Namespace: name.Namespace, Name: forgotten})
		if err != nil {
			return false, err
		}
		tx.TouchTopic(sum)
		sum.Registered += t.Registered
		sum.Delivered += t.Delivered
		sum.Dead += t.Dead
		sum.Cancelled += t.Cancelled
	}
	return false, nil
}
