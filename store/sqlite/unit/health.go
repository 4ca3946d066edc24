package unit

import (
	"database/sql/driver"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
)

// ChangeHealth adds the attempts of settlements to the health of their lanes.
func (u *Unit) ChangeHealth(items []store.Settlement, refused []error) (changes []store.HealthChange) {
	counts := store.CountAttempts(items, refused, func(name job.Queue) bool {
		if len(u.Mem.Unhealthy) == 0 {
			return false
		}
		q := u.Mem.Queues[name]
		return q != nil && q.Health != nil
	})
	for _, c := range counts {
		q := u.Mem.Queues[c.Queue]
		before := q.Health
		u.SetHealth(q, before.After(clock.Time(u.Now.Millis), c.HealthCount, c.Newest))
		u.countLane(q, c.HealthCount)
		changes = append(changes, store.HealthChange{Queue: c.Queue, Before: before, After: q.Health})
	}
	return changes
}

// SetHealth replaces a queue's health.
func (u *Unit) SetHealth(q *memory.Queue, h *policy.Health) {
	u.Touch(q)
	q.Health = h
}

// ParseHealth reads a queue's stored health. An unreadable one is none: the next failure begins another.
func ParseHealth(column driver.Value) *policy.Health {
	if column == nil {
		return nil
	}
	return store.ParseHealth(db.Text(column))
}

func healthColumn(h *policy.Health) driver.Value {
	if h == nil {
		return nil
	}
	return store.FormatHealth(h)
}
