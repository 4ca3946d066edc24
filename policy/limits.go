package policy

import (
	"cmp"
	"time"
)

// Limits is the part of a topic's policy or of a lane's settings that a store applies. Zero and nil fields are not set.
// Those of a lane have neither a retention nor Deliver.
type Limits struct {
	Paused        bool           `json:"paused,omitempty"`
	Concurrency   int            `json:"concurrency,omitempty"` // of each lane
	Rate          Rate           `json:"rate,omitzero"`         // of each lane
	Ordered       bool           `json:"ordered,omitempty"`     // Concurrency is 1 then
	Deliver       Deliver        `json:"deliver,omitempty"`
	KeepDelivered Retention      `json:"keep_delivered,omitzero"`
	KeepDead      Retention      `json:"keep_dead,omitzero"`
	IDWindow      *time.Duration `json:"id_window,omitempty"`
}

// Limits returns the limits of t.
func (t Topic) Limits() Limits {
	return Limits{
		Paused: t.Paused, Concurrency: concurrency(t.LaneConcurrency, t.Ordered), Rate: t.LaneRate, Ordered: t.Ordered,
		Deliver: t.Deliver, KeepDelivered: t.KeepDelivered, KeepDead: t.KeepDead, IDWindow: t.IDWindow,
	}
}

// Limits returns the limits of l.
func (l Lane) Limits() Limits {
	return Limits{
		Paused: l.Paused, Concurrency: concurrency(l.LaneConcurrency, l.Ordered), Rate: l.LaneRate, Ordered: l.Ordered,
	}
}

// concurrency returns the concurrency of a lane: 1 if it is ordered.
func concurrency(set int, ordered bool) int {
	if ordered {
		return 1
	}
	return set
}

// Over returns l with every unset field taken from base: the limits of a lane over those of its topic, or of a topic
// over the defaults. A queue is paused, or ordered, if its topic or its lane is.
func (l Limits) Over(base Limits) Limits {
	l.Paused = l.Paused || base.Paused
	l.Ordered = l.Ordered || base.Ordered
	l.Concurrency = concurrency(cmp.Or(l.Concurrency, base.Concurrency), l.Ordered)
	l.Rate = l.Rate.or(base.Rate)
	l.Deliver = cmp.Or(l.Deliver, base.Deliver)
	l.KeepDelivered = l.KeepDelivered.withDefaults(base.KeepDelivered)
	l.KeepDead = l.KeepDead.withDefaults(base.KeepDead)
	l.IDWindow = cmp.Or(l.IDWindow, base.IDWindow)
	return l
}

// Rate is a rate limit: at most Starts attempts start in any window of length Per, over all processes. The zero value
// is no limit.
type Rate struct {
	Starts int           `json:"n,omitempty"`
	Per    time.Duration `json:"per,omitempty"`
}

// Limits of a rate, enforced by units.ParseRate.
const (
	MaxStarts = 1_000_000
	MinPer    = 100 * time.Millisecond
	MaxPer    = 30 * 24 * time.Hour
)

// Limited reports whether the rate is a limit.
func (r Rate) Limited() bool { return r.Starts > 0 && r.Per > 0 }

// or returns r if it is a limit, else base.
func (r Rate) or(base Rate) Rate {
	if r.Limited() {
		return r
	}
	return base
}
