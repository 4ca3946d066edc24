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
		swept, err = once(tx, call{"sweep", token}, light[store.SweepResult], func() (store.SweepResult, error) {
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
	for _, t := range tx.mem.topics {
		if t.grants != nil && t.grants.Expired(tx.now) {
			tx.touchTopic(t)
			t.grants = nil
		}
		retain := func() error { return tx.retain(t, limit, &swept) }
		if err := tx.unlessDamaged(&t.noRetention, "remove ended jobs of topic "+t.name.name, retain); err != nil {
			return swept, err
		}
	}
	tx.forgetThrottles(limit)
	more := false
	err := tx.unlessDamaged(&tx.mem.noRemoval, "remove unused lanes and topics", func() (err error) {
		more, err = tx.forget(limit)
		return err
	})
	swept.More = swept.More || more
	return swept, err
}

// retain removes what retention no longer keeps of a topic.
func (tx *tx) retain(t *topic, limit int, swept *store.SweepResult) error {
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
	for q := range tx.mem.throttled {
		if limit--; limit < 0 {
			return
		}
		if q.throttle != nil && q.throttleExpired(tx.now) {
			tx.touch(q)
			q.throttle = nil
		}
	}
}

// over is how many retained jobs are beyond their number, or one where the oldest must go for its age or for bytes.
func (tx *tx) over(s *retained, keep policy.Retention) int64 {
	switch {
	case s.jobs > *keep.Max:
		return s.jobs - *keep.Max
	case s.jobs > 0 && (s.bytes > *keep.MaxBytes || s.oldest+keep.For.Milliseconds() <= tx.now.Millis):
		return 1
	default:
		return 0
	}
}

// trim removes the oldest retained jobs of some states until they are within their bounds.
func (tx *tx) trim(t *topic, states []job.State, limit int, swept *store.SweepResult) error {
	s, keep := t.retained(states[0])
	if tx.over(s, keep) == 0 {
		return nil
	}
	ended, err := tx.oldestEnded(t, states, limit-swept.Jobs+1)
	if err != nil {
		return err
	}
	tx.touchTopic(t)
	for i, r := range ended {
		s.oldest = clock.Millis(r.FinishedAt)
		if tx.over(s, keep) == 0 {
			return nil
		}
		if swept.Jobs == limit {
			swept.More = true
			return nil
		}
		q, err := tx.loadQueue(r.Queue)
		if err != nil {
			return err
		}
		if err := tx.remove(q, r.Ref(), r.N, r.Progress(), r.State, r.Reason, s.oldest); err != nil {
			return err
		}
		s.jobs--
		s.bytes -= r.Size()
		swept.Jobs++
		ended[i] = nil
	}
	if s.jobs == 0 {
		s.bytes = 0
	}
	return nil
}

// oldestEnded reads the oldest ended jobs in some states, by their end.
func (tx *tx) oldestEnded(t *topic, states []job.State, limit int) (ended []*table.Row, err error) {
	for _, state := range states {
		err := tx.Query(table.OldestEnded, func(v []driver.Value) error {
			c := table.Cells(v)
			r := c.Row()
			c.Names(r)
			ended = append(ended, r)
			return nil
		}, t.id, string(state), int64(limit))
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
func (tx *tx) forgetIDs(t *topic, limit int, swept *store.SweepResult) error {
	window := t.limits.IDWindow.Milliseconds()
	if t.ids == 0 || t.oldestID+window > tx.now.Millis {
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
	}, t.id, int64(limit-swept.IDs+1))
	if err != nil {
		return err
	}
	tx.touchTopic(t)
	for _, r := range oldest {
		t.oldestID = r.finished
		if r.finished+window > tx.now.Millis {
			return nil
		}
		if swept.IDs == limit {
			swept.More = true
			return nil
		}
		if err := tx.Exec(table.DeleteID, r.namespace, r.id); err != nil {
			return err
		}
		t.ids--
		tx.mem.ids--
		swept.IDs++
	}
	return nil
}

// forgetLanes removes lanes that no job refers to, at most limit, and unloads those that are idle. more says that there
// are others to remove.
func (tx *tx) forgetLanes(limit int) (more bool, err error) {
	m := tx.mem
	for q := range m.unused {
		if q.rows > 0 || q.throttle != nil || q.savedIn == tx.serial {
			continue
		}
		if limit--; limit < 0 {
			more = true
			break
		}
		if err := tx.Exec(table.DeleteQueue, q.id); err != nil {
			return false, err
		}
		m.forget(q)
		tx.undo(func() {
			m.add(q)
			m.unused[q] = struct{}{}
		})
	}
	tx.unloadLanes()
	return more, nil
}

// unloadLanes drops lanes from memory that have been idle since the last check, a minute ago or more. A lane that is to be
// removed stays until it is: nothing would find its row before the next Open.
func (tx *tx) unloadLanes() {
	m := tx.mem
	if tx.now.Mono-m.idleLooked < int64(idleLook) {
		return
	}
	m.idleLooked = tx.now.Mono
	before := len(m.queues)
	for _, q := range m.queues {
		switch {
		case q.waiting > 0 || q.running > 0 || q.throttle != nil || q.savedIn == tx.serial:
			q.idleIn = 0
		case q.rows == 0:
			m.unused[q] = struct{}{}
		case q.idleIn == q.savedIn+1:
			m.forget(q)
		default:
			q.idleIn = q.savedIn + 1
		}
	}
	if len(m.queues) < before/2 { // a map keeps the room that it once needed
		m.queues, m.byID = regrown(m.queues), regrown(m.byID)
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
	for name, t := range tx.mem.topics {
		if !t.unused() || t.savedIn == tx.serial || name.name == forgotten || tx.now.Mono < t.inUseUntil {
			continue
		}
		if limit--; limit < 0 {
			return true, nil
		}
		gone, err := tx.Change(table.DeleteTopic, t.id, name.namespace, name.name)
		if err != nil {
			return false, err
		}
		if gone == 0 { // it has lanes with settings: others are not kept from their turn by it, nor is Sweep called at once again
			t.inUseUntil = tx.now.Mono + int64(idleLook)
			continue
		}
		delete(tx.mem.topics, name)
		tx.undo(func() { tx.mem.topics[name] = t })
		if t.registered == 0 {
			continue
		}
		sum, err := tx.topic(topicName{name.namespace, forgotten})
		if err != nil {
			return false, err
		}
		tx.touchTopic(sum)
		sum.registered += t.registered
		sum.delivered += t.delivered
		sum.dead += t.dead
		sum.cancelled += t.cancelled
	}
	return false, nil
}

// unused reports whether nothing in memory refers to the topic.
func (t *topic) unused() bool {
	return t.revision == 0 && len(t.queues) == 0 && t.waiting == 0 && t.running == 0 && t.keptDone.jobs == 0 && t.keptDead.jobs == 0 &&
		t.ids == 0 && t.grants == nil && !t.alarm
}
