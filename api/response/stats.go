package response

import (
	"time"

	"github.com/ringback/ringback/store"
)

// TopicStats writes the counts of a topic, or of all topics.
func (o *Buffer) TopicStats(t *store.TopicStats) {
	o.Number("registered", t.Registered)
	o.Number("scheduled", t.Scheduled)
	o.Number("ready", t.Ready)
	o.Number("running", t.Running)
	o.Number("delivered", t.Delivered)
	o.Number("dead", t.Dead)
	o.Number("cancelled", t.Cancelled)
	o.Time("oldest_due", t.OldestDue)
	o.Number("lanes_open", t.OpenBreakers)
}

// LaneStats writes the counts of a lane and the state of its breaker.
func (o *Buffer) LaneStats(l *store.LaneStats, now time.Time) {
	o.Text("lane", l.Lane)
	o.Number("scheduled", l.Scheduled)
	o.Number("ready", l.Ready)
	o.Number("running", l.Running)
	coolingDown := l.CooldownUntil.After(now)
	breaker := "closed"
	switch {
	case l.BreakerOpen && coolingDown:
		breaker = "open"
	case l.BreakerOpen:
		breaker = "half_open" // a probe is allowed, or in flight
	}
	o.Text("breaker", breaker)
	if coolingDown {
		o.Time("held_until", l.CooldownUntil)
	}
}
