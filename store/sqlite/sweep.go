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
	"github.com/ringback/ringback/store/sqlite/unit"
)

// sweepMost bounds one Sweep whatever its limit: no other call is served meanwhile.
const sweepMost = 1024

// sweepIdle is how long a lane with nothing pending stays in memory at least. The next job of it reads it again.
const sweepIdle = time.Minute

// Sweep implements store.Keeper. Topics within their bounds of retention cost nothing but a look at memory.
func (k *keeping) Sweep(ctx context.Context, token store.Token, limit int) (store.SweepResult, error) {
	limit = min(limit, sweepMost)
	return unit.Submit(ctx, k.db, token, keeperOp{
		Verb:   "sweep",
		Weight: limit,
	}, lightWeight, func(u *unit.Unit) (store.SweepResult, error) {
		s := &sweep{Unit: u, limit: limit}
		err := s.sweep()
		return s.result, err
	})
}

// A sweep is one Sweep under way.
type sweep struct {
	*unit.Unit
	limit  int // of jobs, ids, lanes and topics each
	result store.SweepResult
}

func (s *sweep) sweep() error {
	for _, t := range s.Mem.Topics {
		if t.Grants != nil && t.Grants.Expired(s.Now) {
			s.TouchTopic(t)
			t.Grants = nil
		}
		if err := s.retain(t); err != nil {
			return err
		}
	}
	if err := s.dropReplies(); err != nil {
		return err
	}
	s.dropThrottles()
	s.dropHealth()
	if err := s.dropHistory(); err != nil {
		return err
	}
	if err := s.removeLanes(); err != nil {
		return err
	}
	s.unloadLanes()
	return s.removeTopics()
}

// retain removes what retention no longer keeps of a topic.
func (s *sweep) retain(t *memory.Topic) error {
	for _, states := range [][]job.State{{job.Delivered, job.Cancelled}, {job.Dead}} {
		if err := s.trim(t, states); err != nil {
			return err
		}
	}
	return s.forgetIDs(t)
}

// dropReplies removes the stored replies that were marked store.TokenTTL ago or earlier.
func (s *sweep) dropReplies() error {
	n := &s.Mem.StoredReplies
	if s.Now.Mono-n.MarkedAt < int64(store.TokenTTL) {
		return nil
	}
	if n.Marked > n.Dropped {
		dropped, err := s.Change(table.DropReplies, n.Marked, int64(s.limit))
		if err != nil {
			return err
		}
		if dropped == int64(s.limit) {
			s.result.More = true
			return nil
		}
	}
	n.Dropped = n.Marked
	n.Mark(s.Now.Mono)
	return nil
}

// dropThrottles drops throttles that have expired.
func (s *sweep) dropThrottles() {
	looked := 0
	for q := range s.Mem.Throttled {
		if looked++; looked > s.limit {
			return
		}
		if q.Throttle != nil && q.ThrottleExpired(s.Now) {
			s.Touch(q)
			q.Throttle = nil
		}
	}
}

// dropHealth drops the health of lanes that had no attempt for long.
func (s *sweep) dropHealth() {
	looked := 0
	for q := range s.Mem.Unhealthy {
		if looked++; looked > s.limit {
			return
		}
		if q.Health != nil && q.Health.Expired(clock.Time(s.Now.Millis)) {
			s.SetHealth(q, nil)
		}
	}
}

// dropHistory drops minutes and hours that nobody reads any more.
func (s *sweep) dropHistory() error {
	if s.Now.Mono-s.Mem.HistoryLooked < int64(time.Minute) {
		return nil
	}
	before := s.Mem.HistoryLooked
	s.Mem.HistoryLooked = s.Now.Mono
	for span, n := range map[time.Duration]int64{time.Minute: store.HistoryMinutes, time.Hour: store.HistoryHours} {
		ms := span.Milliseconds()
		dropped, err := s.Change(table.DropHistory, ms, s.Now.Millis-n*ms, int64(s.limit))
		if err != nil {
			return err
		}
		if dropped == int64(s.limit) {
			s.result.More, s.Mem.HistoryLooked = true, before
		}
	}
	return nil
}

// exceeds reports whether the oldest of the retained jobs must go: for their number, for their bytes or for its age.
func (s *sweep) exceeds(kept *memory.Retained, keep policy.Retention) bool {
	return kept.Jobs > *keep.Max ||
		kept.Jobs > 0 && (kept.Bytes > *keep.MaxBytes || kept.Oldest+keep.For.Milliseconds() <= s.Now.Millis)
}

// trim removes the oldest retained jobs of some states until they are within their bounds.
func (s *sweep) trim(t *memory.Topic, states []job.State) error {
	kept, keep := t.Retained(states[0])
	if !s.exceeds(kept, keep) {
		return nil
	}
	ended, err := s.oldestEnded(t, states, s.limit-s.result.Jobs+1)
	if err != nil {
		return err
	}
	s.TouchTopic(t)
	for i, r := range ended {
		kept.Oldest = clock.Millis(r.FinishedAt)
		if !s.exceeds(kept, keep) {
			return nil
		}
		if s.result.Jobs == s.limit {
			s.result.More = true
			return nil
		}
		q, err := s.LoadQueue(r.Queue)
		if err != nil {
			return err
		}
		if err := s.Remove(q, r.Ref(), r.N, r.Progress(), r.State, r.Reason, kept.Oldest); err != nil {
			return err
		}
		kept.Jobs--
		kept.Bytes -= r.Size()
		s.result.Jobs++
		ended[i] = nil
	}
	if kept.Jobs == 0 {
		kept.Bytes = 0
	}
	return nil
}

// oldestEnded reads the oldest ended jobs in some states, by their end.
func (s *sweep) oldestEnded(t *memory.Topic, states []job.State, limit int) (ended []*table.Row, err error) {
	for _, state := range states {
		err := s.Query(table.OldestEnded, func(v []driver.Value) error {
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
func (s *sweep) forgetIDs(t *memory.Topic) error {
	window := t.Limits.IDWindow.Milliseconds()
	if t.Ids == 0 || t.OldestID+window > s.Now.Millis {
		return nil
	}
	type remembered struct {
		namespace, id string
		finished      int64
	}
	var oldest []remembered
	err := s.Query(table.OldestIDs, func(v []driver.Value) error {
		oldest = append(oldest, remembered{db.Text(v[0]), db.Text(v[1]), db.Int(v[2])})
		return nil
	}, t.Id, int64(s.limit-s.result.IDs+1))
	if err != nil {
		return err
	}
	s.TouchTopic(t)
	for _, r := range oldest {
		t.OldestID = r.finished
		if r.finished+window > s.Now.Millis {
			return nil
		}
		if s.result.IDs == s.limit {
			s.result.More = true
			return nil
		}
		if err := s.Exec(table.DeleteID, r.namespace, r.id); err != nil {
			return err
		}
		t.Ids--
		s.Mem.Ids--
		s.result.IDs++
	}
	return nil
}

// removeLanes removes lanes that no job refers to.
func (s *sweep) removeLanes() error {
	m, count := s.Mem, 0
	for q := range m.Unused {
		if q.Rows > 0 || q.Throttle != nil || q.SavedIn == s.Serial ||
			q.Health.Known(clock.Time(s.Now.Millis)) {
			continue
		}
		if count == s.limit {
			s.result.More = true
			break
		}
		count++
		if err := s.Exec(table.DeleteQueue, q.Id); err != nil {
			return err
		}
		m.RemoveQueue(q)
		s.OnUndo(func() {
			m.AddQueue(q)
			m.Unused[q] = struct{}{}
		})
	}
	return nil
}

// unloadLanes drops the wake-ups of lanes without jobs, and lanes from memory that have been idle since the last check,
// a minute ago or more. A lane that is to be removed stays until it is: nothing would find its row before the next
// Open.
func (s *sweep) unloadLanes() {
	m := s.Mem
	if s.Now.Mono-m.IdleLooked < int64(sweepIdle) {
		return
	}
	m.IdleLooked = s.Now.Mono
	s.Env.Wakeups.DropIdle()
	before := len(m.Queues)
	for _, q := range m.Queues {
		switch {
		case q.Waiting > 0 || q.Running > 0 || q.Throttle != nil || q.Health != nil || q.SavedIn == s.Serial:
			q.IdleIn = 0
		case q.Rows == 0:
			m.Unused[q] = struct{}{}
		case q.IdleIn == q.SavedIn+1:
			m.RemoveQueue(q)
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

// removed is the name of the topic that has the counts of those that were removed. No job can name it.
const removed = ""

// removeTopics removes topics that nothing refers to: no job, kept or not, no lane, no policy, no id that is
// remembered, no start that a rate counts and no alarm. Their counts are kept together.
func (s *sweep) removeTopics() error {
	looked := 0
	for name, t := range s.Mem.Topics {
		if !t.Unused() || t.SavedIn == s.Serial || name.Name == removed || s.Now.Mono < t.InUseUntil {
			continue
		}
		if looked == s.limit {
			s.result.More = true
			return nil
		}
		looked++
		gone, err := s.Change(table.DeleteTopic, t.Id, name.Namespace, name.Name)
		if err != nil {
			return err
		}
		// it has lanes with settings: it keeps no other from its turn, and Sweep is not called again at once for it
		if gone == 0 {
			t.InUseUntil = s.Now.Mono + int64(sweepIdle)
			continue
		}
		delete(s.Mem.Topics, name)
		s.OnUndo(func() { s.Mem.Topics[name] = t })
		if t.Registered == 0 {
			continue
		}
		sum, err := s.Topic(memory.TopicName{Namespace: name.Namespace, Name: removed})
		if err != nil {
			return err
		}
		s.TouchTopic(sum)
		sum.Registered += t.Registered
		sum.Delivered += t.Delivered
		sum.Dead += t.Dead
		sum.Cancelled += t.Cancelled
	}
	return nil
}
