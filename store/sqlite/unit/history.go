package unit

import (
	"database/sql/driver"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// CountHistory adds to the history of a queue's topic, and of its namespace.
func (u *Unit) CountHistory(q job.Queue, counts *store.HistoryCounts) {
	if store.IsInternal(q.Topic) || *counts == (store.HistoryCounts{}) {
		return
	}
	u.addHistory(q.Namespace, q.Topic, counts)
	u.addHistory(q.Namespace, store.AllTopics, counts)
}

func (u *Unit) addHistory(namespace, topic string, counts *store.HistoryCounts) {
	if u.history == nil {
		u.history = make(map[memory.TopicName]*store.HistoryCounts)
	}
	name := memory.TopicName{Namespace: namespace, Name: topic}
	if u.history[name] == nil {
		u.history[name] = new(store.HistoryCounts)
	}
	u.history[name].Add(counts)
}

// countLane adds attempts to the history of a lane that has health, if it has a place.
func (u *Unit) countLane(q *memory.Queue, counts policy.HealthCount) {
	if q.Health == nil || store.IsInternal(q.Name.Topic) {
		return
	}
	if q.Topic.LanePlaces == nil {
		q.Topic.LanePlaces = make(store.LanePlaces)
	}
	if q.Topic.LanePlaces.Take(q.Name.Lane, clock.Time(u.Now.Millis)) {
		u.addHistory(q.Name.Namespace, store.LaneHistory(q.Name),
			&store.HistoryCounts{Delivered: counts.Delivered, Failed: counts.Failed})
	}
}

// flushHistory writes what CountHistory added, a row a minute and one an hour.
func (u *Unit) flushHistory() error {
	for name, counts := range u.history {
		for _, span := range []time.Duration{time.Minute, time.Hour} {
			ms := span.Milliseconds()
			row := []driver.Value{name.Namespace, name.Name, ms, u.Now.Millis - u.Now.Millis%ms}
			for _, n := range counts.Numbers() {
				row = append(row, *n)
			}
			if err := u.Exec(table.AddHistory, row...); err != nil {
				return err
			}
		}
	}
	return nil
}
