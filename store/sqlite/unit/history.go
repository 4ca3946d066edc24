package unit

import (
	"database/sql/driver"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// CountHistory adds to the history of a queue's topic, and of its namespace.
func (u *Unit) CountHistory(q job.Queue, counts *store.HistoryCounts) {
	if store.IsInternal(q.Topic) || *counts == (store.HistoryCounts{}) {
		return
	}
	if u.history == nil {
		u.history = make(map[memory.TopicName]*store.HistoryCounts)
	}
	for _, topic := range []string{q.Topic, store.AllTopics} {
		name := memory.TopicName{Namespace: q.Namespace, Name: topic}
		if u.history[name] == nil {
			u.history[name] = new(store.HistoryCounts)
		}
		u.history[name].Add(counts)
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
