package storetest

import (
	"context"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Sweep removes the jobs that ended first.
func (s *modelShard) Sweep(ctx context.Context, token store.Token, limit int) (store.SweepResult, error) {
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return store.SweepResult{}, err
	}
	defer m.mu.Unlock()
	return once(s, now, call{"sweep", token}, func() (store.SweepResult, error) {
		var swept store.SweepResult
		for name, t := range s.topics {
			p := m.limits(name)
			s.trim(&t.done, p.KeepDelivered, limit, now, &swept)
			s.trim(&t.dead, p.KeepDead, limit, now, &swept)
		}
		for ref, id := range s.ids {
			if s.jobs[ref] != nil || id.finishedAt.Add(*m.limits(id.topic).IDWindow).After(now) {
				continue
			}
			if swept.IDs == limit {
				swept.More = true
				break
			}
			delete(s.ids, ref)
			swept.IDs++
		}
		for name, t := range s.topics {
			if m.isUnused(s, t) {
				sum := s.forgotten[name.namespace]
				sum.Registered += t.registered
				sum.Delivered += t.delivered
				sum.Dead += t.died
				sum.Cancelled += t.cancelled
				s.forgotten[name.namespace] = sum
				t.registered, t.delivered, t.died, t.cancelled = 0, 0, 0, 0
			}
		}
		return swept, nil
	})
}

// Repair does nothing: the model loses nothing.
func (s *modelShard) Repair(ctx context.Context) (store.RepairResult, error) {
	m := s.model
	if _, err := m.open(ctx); err != nil {
		return store.RepairResult{}, err
	}
	defer m.mu.Unlock()
	return store.RepairResult{Complete: true, Wait: -1}, nil
}

// isUnused reports whether a topic has neither jobs nor settings. The model removes only its counts.
func (m *Model) isUnused(s *modelShard, t *topic) bool {
	if t.registered == 0 || isInternal(t.name.topic) || len(t.done.items)+len(t.dead.items) > 0 ||
		m.documents[topicKey(t.name)].Revision != 0 || s.alarms[t.name] {
		return false
	}
	for _, q := range t.lanes {
		if len(q.due.items)+len(q.ready.items)+len(q.claimed.items) > 0 {
			return false
		}
	}
	for key := range s.documents {
		if isSameTopic(key, topicKey(t.name)) {
			return false
		}
	}
	for _, id := range s.ids {
		if id.topic == t.name {
			return false
		}
	}
	return true
}

// trim removes jobs of a set that are beyond its retention.
func (s *modelShard) trim(l *sortedRecords, keep policy.Retention, limit int, now time.Time, swept *store.SweepResult) {
	for r := l.first(); r != nil; r = l.first() {
		if int64(len(l.items)) <= *keep.Max && l.bytes <= *keep.MaxBytes && r.job.FinishedAt.Add(*keep.For).After(now) {
			return
		}
		if swept.Jobs == limit {
			swept.More = true
			return
		}
		s.remove(r)
		delete(s.jobs, r.job.Ref())
		swept.Jobs++
	}
}
